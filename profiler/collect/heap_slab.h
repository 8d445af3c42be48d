/*
 * heap_slab.h - slots for small sampled blocks, and what is known of the block in each.
 *
 * For heap_range.c alone.
 */
#ifndef COLLECT_HEAP_SLAB_H
#define COLLECT_HEAP_SLAB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "heap_run.h"
#include "heap_site.h"

#define HEAP_SLOT_MAX  8192 /* bytes; larger blocks get pages of their own */
#define HEAP_CLASSES   40
#define HEAP_SITE_FREE 0    /* a tag without a site: no block is there */

struct heap_tag {
	_Atomic uint32_t site;
	uint32_t         size; /* of a free slot: the next free one */
	uint64_t         weight;
};

struct heap_slot {
	uint32_t run; /* 0: none */
	uint32_t slot;
};

/* Once. */
void     heap_slab_init(void);
/* The smallest class that fits, with slots aligned; HEAP_CLASSES: none. */
unsigned heap_slab_class(size_t size, size_t align);
uint32_t heap_slab_slot_bytes(const struct heap_run *r);

static inline struct heap_tag *
heap_slab_tags(const struct heap_run *r)
{
	return (struct heap_tag *)(heap_run_memory(r) + (size_t)r->pages * HEAP_PAGE) - r->slots;
}

/* Under heap_lock(). */

/* run 0: no room. */
struct heap_slot heap_slab_allocate(unsigned class);
void             heap_slab_release(struct heap_slot s);

/* Any time, in any thread, interrupted anywhere: of each class some slots are kept for
 * the next block.  They belong to whoever takes them. */

struct heap_slot heap_slab_take_kept(unsigned class);
/* False: enough are kept. */
bool             heap_slab_keep(struct heap_slot s);
/* Makes it a block, of the caller's slot. */
void            *heap_slab_fill(struct heap_slot s, const struct heap_block *b);

#endif
