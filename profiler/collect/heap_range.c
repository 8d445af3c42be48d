/*
 * heap_range.c - a small allocator for sampled blocks, in a range of its own.
 *
 * The range is a row of pages of 4 KiB, cut into runs (heap_run.c).  A run is one
 * large block, or a slab of equal slots (heap_slab.c), or free.
 *
 *     range:   | slab of 48s | large block      | free   | slab ... | untouched
 *
 * A small block of a known site takes a kept slot, is counted and freed again without
 * a lock or a system call; all else is done under heap_lock().
 *
 * What is known of a block (site, size, weight) lies in its slab's tags or, of a large
 * one, in its run.  Slots come in steps of at most a quarter, large blocks in pages, so that
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
 *   linked through its own first bytes, which is why no slot is below 16.  So is a
 *   slot whose block has been counted as freed; the lowest bit of its link says so.
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
#include "heap_slab.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4 /* Linux 5.7; refused before, then it is copied */
#endif

#define KEEP_BYTES    ((size_t)128 << 10) /* a free run above goes back to the kernel, as mmap'd malloc's */
#define MOVE_BYTES    ((size_t)4 << 20)   /* moving pages splits mappings: 16384 at most in all */
#define COUNTED       ((uintptr_t)1)      /* in a link of `aside` */

static _Atomic uintptr_t aside;

/* ---- finding a block again ---- */

/* The run whose block or slot, in use or not, begins at that address; 0: none does. */
static uint32_t
place_run(const void *block, uint32_t *ret_slot)
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
		return in == 0 ? number : 0;
	if (r->kind != RUN_SLAB)
		return 0;
	*ret_slot = (uint32_t)in / heap_slab_slot_bytes(r);
	if (*ret_slot * heap_slab_slot_bytes(r) != in || *ret_slot >= r->slots ||
	    *ret_slot >= __atomic_load_n(&r->untouched, __ATOMIC_RELAXED))
		return 0;
	return number;
}

/* The same, of a block that is there. */
static uint32_t
block_run(const void *block, uint32_t *ret_slot)
{
	uint32_t         number = place_run(block, ret_slot);
	struct heap_run *r = number ? heap_run_at(number) : NULL;
	uint32_t         site = HEAP_SITE_FREE;

	if (r)
		site = r->kind == RUN_LARGE ? r->block.site :
			atomic_load_explicit(&heap_slab_tags(r)[*ret_slot].site, memory_order_relaxed);
	return site != HEAP_SITE_FREE ? number : 0;
}

bool
heap_range_find(const void *block, struct heap_block *ret)
{
	uint32_t    slot = 0, number = block_run(block, &slot);
	struct heap_run *r;
	struct heap_tag *t;

	if (!number)
		return false;
	r = heap_run_at(number);
	if (r->kind == RUN_LARGE) {
		*ret = r->block;
		return true;
	}
	t = &heap_slab_tags(r)[slot];
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

	if (!number || b->size <= HEAP_SLOT_MAX || pages > heap_runs.size / HEAP_PAGE)
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
		heap_slab_release((struct heap_slot){ number, slot });
		return 0;
	}
	r->block.site = HEAP_SITE_FREE;
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

/* Blocks that came while nobody could be waited for; how: 0 or COUNTED. */
static void
put_aside(void *block, uintptr_t how)
{
	uintptr_t head = atomic_load(&aside);

	do
		*(uintptr_t *)block = head;
	while (!atomic_compare_exchange_weak(&aside, &head, (uintptr_t)block | how));
}

static void
take_aside(void)
{
	uintptr_t        block, next;
	uint32_t         number;
	struct heap_slot s;

	if (!atomic_load_explicit(&aside, memory_order_relaxed))
		return;
	for (block = atomic_exchange(&aside, 0); block; block = next) {
		next = *(uintptr_t *)(block & ~COUNTED);
		if (block & COUNTED) {
			s.run = place_run((void *)(block & ~COUNTED), &s.slot);
			heap_slab_release(s);
			continue;
		}
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

/* A slot that is no block any more, or has not become one. */
static void
give_slot(struct heap_slot s)
{
	struct heap_lock_hold hold;
	struct heap_run      *r;

	if (heap_slab_keep(s))
		return;
	if (heap_lock(&hold)) {
		heap_slab_release(s);
		heap_unlock(&hold);
		return;
	}
	r = heap_run_at(s.run);
	put_aside(heap_run_memory(r) + (size_t)s.slot * heap_slab_slot_bytes(r), COUNTED);
}

/* s: a kept slot, perhaps. */
static void *
allocate_locked(size_t align, unsigned class, struct heap_slot s, struct heap_block *b, bool *ret_clean)
{
	struct heap_lock_hold hold;
	void                 *block = NULL;

	if (!heap_lock(&hold))
		goto out;
	take_aside();
	if (heap_site_resolve(b) && class < HEAP_CLASSES) {
		if (!s.run)
			s = heap_slab_allocate(class);
		if (s.run)
			block = heap_slab_fill(s, b);
	} else if (b->site) {
		block = large_allocate(align, b, ret_clean);
	}
	if (block)
		heap_site_allocated(b);
	heap_unlock(&hold);
out:
	if (!block && s.run)
		give_slot(s);
	return block;
}

void *
heap_range_allocate(size_t align, bool zeroed, struct heap_block *b)
{
	unsigned         class = heap_slab_class(b->size, align);
	struct heap_slot s = { 0, 0 };
	bool             clean = false;
	void            *block;

	if (class < HEAP_CLASSES)
		s = heap_slab_take_kept(class);
	if (s.run && b->site && !atomic_load_explicit(&aside, memory_order_relaxed) && heap_site_try_allocated(b))
		block = heap_slab_fill(s, b);
	else
		block = allocate_locked(align, class, s, b, &clean);
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

	if (!heap_range_find(block, &old) || old.size <= HEAP_SLOT_MAX || !heap_lock(&hold))
		return NULL;
	take_aside();
	done = heap_site_resolve(b) && resize_in_place(block, b);
	heap_unlock(&hold);
	return done ? block : resize_by_moving(block, old.size, b);
}

/* A block in a slot, without the lock; false: with it, then. */
static bool
release_slot(void *block)
{
	struct heap_slot  s = { 0, 0 };
	struct heap_block b;
	struct heap_tag  *t;

	if (atomic_load_explicit(&aside, memory_order_relaxed))
		return false;
	s.run = place_run(block, &s.slot);
	if (!s.run || heap_run_at(s.run)->kind != RUN_SLAB)
		return false;
	t = &heap_slab_tags(heap_run_at(s.run))[s.slot];
	b = (struct heap_block){ .size = t->size, .weight = t->weight };
	b.site = atomic_exchange_explicit(&t->site, HEAP_SITE_FREE, memory_order_acq_rel);
	if (b.site == HEAP_SITE_FREE)
		return true; /* a double free of the daemon's */
	if (!heap_site_try_freed(&b)) {
		atomic_store_explicit(&t->site, b.site, memory_order_release);
		return false;
	}
	give_slot(s);
	return true;
}

void
heap_range_release(void *block)
{
	struct heap_lock_hold hold;
	uint32_t              number;

	if (release_slot(block))
		return;
	if (!heap_lock(&hold)) {
		put_aside(block, 0);
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
	heap_slab_init();
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
