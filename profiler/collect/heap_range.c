/*
 * heap_range.c - a small allocator for sampled blocks, in a range of its own.
 *
 * The range is a row of pages of 4 KiB, cut into runs (heap_run.c).  A run is one
 * large block, or a slab of equal slots, or free.
 *
 *     range:   | slab of 48s | large block      | free   | slab ... | untouched
 *     slab:    slot slot slot ... slot | tag tag tag ... tag
 *
 * A slot's tag (site, size, weight) lies at the slab's end, a large block's in its
 * run.  Slots come in steps of at most a quarter, large blocks in pages, so that
 * a profile at a rate of 4 KiB, where half of the memory may live here, costs
 * less than what malloc's own headers do.
 *
 * What a stranger would get wrong:
 * - heap_range_find() takes no lock: it reads only what was written before the
 *   caller got the block and stays until the caller gives it back.
 * - Large blocks go back to the kernel outside the lock: that takes milliseconds
 *   for a gigabyte.  Meanwhile their run belongs to nobody.
 * - Pages given back are zero when touched again, untouched ones too: `clean`
 *   spares calloc() the memset that would touch a sparse gigabyte.
 * - A block that cannot be freed now (heap_lock() says no) is put on `aside`,
 *   linked through its own first bytes, which is why no slot is below 16.
 * - An array that grows by realloc must not be copied at every step only because it
 *   is a sample: it grows in place, or its pages move.
 *
 * Why not one page a block, as most profilers do: 16 times the memory.
 * Tests: tests/test_heap_range.c.
 */
#include <config.h>

#include "heap_range.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "heap_lock.h"
#include "heap_run.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4 /* Linux 5.7; refused before, then it is copied */
#endif

#define SLOT_MAX      8192        /* larger blocks get pages of their own */
#define SLAB_SLOTS    8           /* at least, so that the tail wastes an eighth */
#define KEEP_BYTES    ((size_t)128 << 10) /* a free run above goes back to the kernel, as mmap'd malloc's */
#define MOVE_BYTES    ((size_t)4 << 20)   /* moving pages splits mappings: 16384 at most in all */
#define CLASSES       40
#define NO_SLOT       UINT32_MAX
#define SITE_FREE     0           /* a tag without a site: the slot is free */

struct tag {
	uint32_t site;
	uint32_t size; /* of a free slot: the next free one */
	uint64_t weight;
};

static uint32_t          roomy[CLASSES]; /* slabs with a free slot, by class */
static uint32_t          class_size[CLASSES];
static unsigned          class_count;
static _Atomic uintptr_t aside;

/* ---- slabs ---- */

static struct tag *
slab_tags(const struct heap_run *r)
{
	return (struct tag *)(heap_run_memory(r) + (size_t)r->pages * HEAP_PAGE) - r->slots;
}

static void
classes_init(void)
{
	uint32_t size = 16, step = 16;

	while (size <= SLOT_MAX) {
		class_size[class_count++] = size;
		if (size >= 8 * step)
			step *= 2;
		size += size < 128 ? 16 : step;
	}
}

/* The smallest class that fits, with slots aligned; class_count: none. */
static unsigned
class_of(size_t size, size_t align)
{
	unsigned c = 0;

	if (align > HEAP_PAGE)
		return class_count;
	while (c < class_count && (class_size[c] < size || (align && class_size[c] % align)))
		c++;
	return c;
}

static uint32_t
slab_new(unsigned class)
{
	uint32_t    slot = class_size[class], pages, number;
	struct heap_run *r;

	pages = (SLAB_SLOTS * (slot + (uint32_t)sizeof(struct tag)) + HEAP_PAGE - 1) / HEAP_PAGE;
	number = heap_run_allocate(pages, 1, RUN_SLAB);
	if (!number)
		return 0;
	r = heap_run_at(number);
	r->class = class;
	r->slots = r->pages * HEAP_PAGE / (slot + (uint32_t)sizeof(struct tag));
	r->used = r->untouched = 0;
	r->free = NO_SLOT;
	heap_run_list_add(&roomy[class], number);
	return number;
}

static void *
slab_allocate(unsigned class, const struct heap_block *b)
{
	uint32_t    number = roomy[class], slot;
	struct heap_run *r;
	struct tag *tags;

	if (!number)
		number = slab_new(class);
	if (!number)
		return NULL;
	r = heap_run_at(number);
	tags = slab_tags(r);
	slot = r->free;
	if (slot != NO_SLOT)
		r->free = tags[slot].size;
	else
		slot = r->untouched++;
	tags[slot] = (struct tag){ b->site, (uint32_t)b->size, b->weight };
	if (++r->used == r->slots)
		heap_run_list_remove(&roomy[class], number);
	return heap_run_memory(r) + (size_t)slot * class_size[class];
}

static void
slab_release(uint32_t number, uint32_t slot)
{
	struct heap_run *r = heap_run_at(number);
	struct tag *tags = slab_tags(r);

	tags[slot].site = SITE_FREE;
	tags[slot].size = r->free;
	r->free = slot;
	if (r->used-- == r->slots)
		heap_run_list_add(&roomy[r->class], number);
	/* The last slab of a class stays: one block coming and going is common. */
	if (r->used > 0 || (roomy[r->class] == number && !r->next))
		return;
	heap_run_list_remove(&roomy[r->class], number);
	r->clean = 0;
	heap_run_free(number);
}

/* ---- finding a block again ---- */

/* Its run, and slot in a slab; 0 when no block begins at that address. */
static uint32_t
block_run(const void *block, uint32_t *ret_slot)
{
	size_t      at = (size_t)((const char *)block - heap_runs.start), in;
	uint32_t    number;
	struct heap_run *r;

	if (at >= (size_t)heap_runs.top * HEAP_PAGE)
		return 0;
	number = heap_runs.owner[at / HEAP_PAGE];
	if (!number)
		return 0;
	r = heap_run_at(number);
	in = at - (size_t)r->start * HEAP_PAGE;
	if (in >= (size_t)r->pages * HEAP_PAGE) /* an old entry, of a page inside a large run */
		return 0;
	if (r->kind == RUN_LARGE)
		return in == 0 && r->block.site != SITE_FREE ? number : 0;
	if (r->kind != RUN_SLAB || in % class_size[r->class])
		return 0;
	*ret_slot = (uint32_t)(in / class_size[r->class]);
	if (*ret_slot >= r->slots || *ret_slot >= r->untouched || slab_tags(r)[*ret_slot].site == SITE_FREE)
		return 0;
	return number;
}

bool
heap_range_find(const void *block, struct heap_block *ret)
{
	uint32_t    slot = 0, number = block_run(block, &slot);
	struct heap_run *r;
	struct tag *t;

	if (!number)
		return false;
	r = heap_run_at(number);
	if (r->kind == RUN_LARGE) {
		*ret = r->block;
		return true;
	}
	t = &slab_tags(r)[slot];
	*ret = (struct heap_block){ .size = t->size, .weight = t->weight, .site = t->site };
	return true;
}

/* ---- in and out ---- */

static void *
large_allocate(size_t align, const struct heap_block *b, bool *ret_clean)
{
	size_t           pages = b->size / HEAP_PAGE + (b->size % HEAP_PAGE > 0);
	uint32_t         number;
	struct heap_run *r;

	pages += pages == 0;
	align = (align + HEAP_PAGE - 1) / HEAP_PAGE;
	if (pages > UINT32_MAX || align > UINT32_MAX)
		return NULL;
	number = heap_run_allocate((uint32_t)pages, (uint32_t)align, RUN_LARGE);
	if (!number)
		return NULL;
	r = heap_run_at(number);
	r->block = *b;
	*ret_clean = r->clean;
	return heap_run_memory(r);
}

static bool
resize_in_place(void *block, const struct heap_block *b)
{
	size_t      pages = b->size / HEAP_PAGE + (b->size % HEAP_PAGE > 0);
	uint32_t    slot, number = block_run(block, &slot);
	struct heap_run *r;

	if (!number || b->size <= SLOT_MAX || pages > heap_runs.size / HEAP_PAGE)
		return false;
	r = heap_run_at(number);
	if (r->kind != RUN_LARGE || (pages > r->pages && !heap_run_extend(number, (uint32_t)pages)))
		return false;
	if (pages < r->pages) {
		r->clean = 0;
		heap_run_trim(number, (uint32_t)pages);
	}
	heap_site_freed(&r->block);
	r->block = *b;
	heap_site_allocated(b);
	return true;
}

/* Takes one block out; a large one that goes back to the kernel is only marked,
 * and its run returned. */
static uint32_t
take_out(void *block)
{
	struct heap_block b;
	uint32_t          slot = 0, number = block_run(block, &slot);
	struct heap_run       *r;

	if (!number || !heap_range_find(block, &b))
		return 0;
	heap_site_freed(&b);
	r = heap_run_at(number);
	if (r->kind == RUN_SLAB) {
		slab_release(number, slot);
		return 0;
	}
	r->block.site = SITE_FREE;
	if ((size_t)r->pages * HEAP_PAGE >= KEEP_BYTES) {
		r->kind = RUN_LEAVING;
		return number;
	}
	r->clean = 0;
	heap_run_free(number);
	return 0;
}

static void
give_back(uint32_t number)
{
	struct heap_run           *r = heap_run_at(number);
	struct heap_lock_hold hold;
	int                   saved = errno;

	r->clean = madvise(heap_run_memory(r), (size_t)r->pages * HEAP_PAGE, MADV_DONTNEED) == 0;
	errno = saved;
	if (!heap_lock(&hold))
		return; /* a fork just now: these pages stay unused, which costs nothing */
	heap_run_free(number);
	heap_unlock(&hold);
}

/* Blocks that came while nobody could be waited for. */
static void
put_aside(void *block)
{
	uintptr_t head = atomic_load(&aside);

	do
		*(uintptr_t *)block = head;
	while (!atomic_compare_exchange_weak(&aside, &head, (uintptr_t)block));
}

static void
take_aside(void)
{
	uintptr_t block, next;
	uint32_t  number;

	if (!atomic_load_explicit(&aside, memory_order_relaxed))
		return;
	for (block = atomic_exchange(&aside, 0); block; block = next) {
		next = *(uintptr_t *)block;
		number = take_out((void *)block);
		if (number) { /* rare: not worth a second list */
			heap_run_at(number)->clean = 0;
			heap_run_free(number);
		}
	}
}

static void
zero(void *block, size_t size)
{
	int    saved = errno;
	size_t whole = size / HEAP_PAGE * HEAP_PAGE;

	/* Touching every page of a large one would make a sparse array real. */
	if (size >= KEEP_BYTES && madvise(block, whole, MADV_DONTNEED) == 0)
		memset((char *)block + whole, 0, size - whole);
	else
		memset(block, 0, size);
	errno = saved;
}

void *
heap_range_allocate(size_t align, bool zeroed, struct heap_block *b)
{
	struct heap_lock_hold hold;
	unsigned              class;
	void                 *block;
	bool                  clean = false;

	if (!heap_lock(&hold))
		return NULL;
	take_aside();
	class = class_of(b->size, align);
	if (!heap_site_resolve(b))
		block = NULL;
	else if (class < class_count)
		block = slab_allocate(class, b);
	else
		block = large_allocate(align, b, &clean);
	if (block)
		heap_site_allocated(b);
	heap_unlock(&hold);
	if (block && zeroed && !clean)
		zero(block, b->size);
	return block;
}

/* The old block's pages to a new place; the old place stays mapped, and empty, so
 * that nobody else can be given it in between. */
static void *
resize_by_moving(void *block, size_t old_size, struct heap_block *b)
{
	size_t bytes = (old_size + HEAP_PAGE - 1) / HEAP_PAGE * HEAP_PAGE;
	int    saved = errno;
	void  *to, *moved;

	if (old_size < MOVE_BYTES || b->size < old_size)
		return NULL;
	to = heap_range_allocate(0, false, b);
	if (!to)
		return NULL;
	moved = mremap(block, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to);
	if (moved == MAP_FAILED)
		memcpy(to, block, old_size);
	errno = saved;
	heap_range_release(block);
	return to;
}

void *
heap_range_resize(void *block, struct heap_block *b)
{
	struct heap_lock_hold hold;
	struct heap_block     old;
	bool                  done;

	if (!heap_range_find(block, &old) || old.size <= SLOT_MAX || !heap_lock(&hold))
		return NULL;
	take_aside();
	done = heap_site_resolve(b) && resize_in_place(block, b);
	heap_unlock(&hold);
	return done ? block : resize_by_moving(block, old.size, b);
}

void
heap_range_release(void *block)
{
	struct heap_lock_hold hold;
	uint32_t              number;

	if (!heap_lock(&hold)) {
		put_aside(block);
		return;
	}
	take_aside();
	number = take_out(block);
	heap_unlock(&hold);
	if (number)
		give_back(number);
}

int
heap_range_reserve(size_t bytes)
{
	classes_init();
	return heap_runs_reserve(bytes);
}

void
heap_range_bounds(uintptr_t *ret_start, size_t *ret_size)
{
	*ret_start = (uintptr_t)heap_runs.start;
	*ret_size = heap_runs.size;
}

size_t
heap_range_opened(void)
{
	return heap_runs.opened;
}
