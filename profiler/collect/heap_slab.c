/*
 * heap_slab.c - slots of slabs, by classes of size; some of each are kept at hand.
 *
 *     slab: | slot | slot | slot | ...         | tag | tag | tag | ... |
 *
 * Tags lie at the slab's end, away from what the daemon writes to.  A slot that is
 * given back goes to `kept` first, where the next block of its class finds it without
 * the lock: most programs free about as often as they allocate, so most samples never
 * see a slab.
 *
 * What a stranger would get wrong:
 * - A place of `kept` is emptied and filled by one instruction each, so a thread that
 *   is interrupted in between, for good perhaps, loses one slot at most.
 * - A kept slot is in use for its slab, and no block for who looks up its address.
 *
 * Why not a place for each thread: it must be emptied when the thread ends, and a
 * thread samples once in 512 KiB.
 * Tests: tests/test_heap_range.c.
 */
#include <config.h>

#include "heap_slab.h"

#define SLAB_SLOTS 8 /* at least, so that the tail wastes an eighth */
#define KEPT       4 /* slots of a class */
#define STEP       16 /* bytes; every class is a multiple */
#define NO_SLOT    UINT32_MAX

static uint32_t roomy[HEAP_CLASSES]; /* slabs with a free slot, by class */
static uint32_t class_size[HEAP_CLASSES];
static unsigned class_count;
static uint8_t  class_by_size[HEAP_SLOT_MAX / STEP + 1]; /* [bytes / STEP, rounded up] */
static _Atomic uint64_t kept[HEAP_CLASSES][KEPT];        /* run << 32 | slot */

void
heap_slab_init(void)
{
	uint32_t size = STEP, step = STEP, at = 0;

	while (size <= HEAP_SLOT_MAX) {
		for (; at * STEP <= size; at++)
			class_by_size[at] = (uint8_t)class_count;
		class_size[class_count++] = size;
		if (size >= 8 * step)
			step *= 2;
		size += size < 128 ? 16 : step;
	}
}

unsigned
heap_slab_class(size_t size, size_t align)
{
	unsigned c;

	if (size > HEAP_SLOT_MAX || align > HEAP_PAGE)
		return HEAP_CLASSES;
	c = class_by_size[(size + STEP - 1) / STEP];
	while (align > STEP && c < class_count && class_size[c] % align)
		c++;
	return c < class_count ? c : HEAP_CLASSES;
}

uint32_t
heap_slab_slot_bytes(const struct heap_run *r)
{
	return class_size[r->class];
}

static uint32_t
slab_new(unsigned class)
{
	uint32_t         slot = class_size[class], pages, number;
	struct heap_run *r;

	pages = (SLAB_SLOTS * (slot + (uint32_t)sizeof(struct heap_tag)) + HEAP_PAGE - 1) / HEAP_PAGE;
	number = heap_run_allocate(pages, 1, RUN_SLAB);
	if (!number)
		return 0;
	r = heap_run_at(number);
	r->class = class;
	r->slots = r->pages * HEAP_PAGE / (slot + (uint32_t)sizeof(struct heap_tag));
	r->used = r->untouched = 0;
	r->free = NO_SLOT;
	heap_run_list_add(&roomy[class], number);
	return number;
}

struct heap_slot
heap_slab_allocate(unsigned class)
{
	uint32_t         number = roomy[class], slot;
	struct heap_run *r;

	if (!number)
		number = slab_new(class);
	if (!number)
		return (struct heap_slot){ 0, 0 };
	r = heap_run_at(number);
	slot = r->free;
	if (slot != NO_SLOT) {
		r->free = heap_slab_tags(r)[slot].size;
	} else {
		slot = r->untouched;
		__atomic_store_n(&r->untouched, slot + 1, __ATOMIC_RELAXED); /* looked at without the lock */
		atomic_store_explicit(&heap_slab_tags(r)[slot].site, HEAP_SITE_FREE, memory_order_relaxed);
	}
	if (++r->used == r->slots)
		heap_run_list_remove(&roomy[class], number);
	return (struct heap_slot){ number, slot };
}

void
heap_slab_release(struct heap_slot s)
{
	struct heap_run *r = heap_run_at(s.run);
	struct heap_tag *t = &heap_slab_tags(r)[s.slot];

	atomic_store_explicit(&t->site, HEAP_SITE_FREE, memory_order_relaxed);
	t->size = r->free;
	r->free = s.slot;
	if (r->used-- == r->slots)
		heap_run_list_add(&roomy[r->class], s.run);
	/* The last slab of a class stays: one block coming and going is common. */
	if (r->used > 0 || (roomy[r->class] == s.run && !r->next))
		return;
	heap_run_list_remove(&roomy[r->class], s.run);
	r->clean = 0;
	heap_run_free(s.run);
}

struct heap_slot
heap_slab_take_kept(unsigned class)
{
	uint64_t s = 0;

	for (unsigned k = 0; k < KEPT && !s; k++)
		if (atomic_load_explicit(&kept[class][k], memory_order_relaxed))
			s = atomic_exchange_explicit(&kept[class][k], 0, memory_order_acquire);
	return (struct heap_slot){ (uint32_t)(s >> 32), (uint32_t)s };
}

bool
heap_slab_keep(struct heap_slot s)
{
	_Atomic uint64_t *places = kept[heap_run_at(s.run)->class];
	uint64_t          none;

	for (unsigned k = 0; k < KEPT; k++) {
		none = atomic_load_explicit(&places[k], memory_order_relaxed);
		if (!none && atomic_compare_exchange_strong_explicit(&places[k], &none, (uint64_t)s.run << 32 | s.slot,
								     memory_order_release, memory_order_relaxed))
			return true;
	}
	return false;
}

void *
heap_slab_fill(struct heap_slot s, const struct heap_block *b)
{
	struct heap_run *r = heap_run_at(s.run);
	struct heap_tag *t = &heap_slab_tags(r)[s.slot];

	t->size = (uint32_t)b->size;
	t->weight = b->weight;
	atomic_store_explicit(&t->site, b->site, memory_order_release);
	return heap_run_memory(r) + (size_t)s.slot * class_size[r->class];
}
