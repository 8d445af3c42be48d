/*
 * set.h - the sampled blocks, by address.
 *
 * A sampled block is an ordinary one of the next allocator: it is never moved, never
 * larger and never elsewhere because of us.  What is known about it lies here.
 */
#ifndef COLLECT_HEAP_SET_H
#define COLLECT_HEAP_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "site.h"
#include "abi.h"

/* Once; filter: the hooks' own, which free() looks at, or NULL: one of ours.  0 or a
 * negative errno. */
int  heap_set_init(struct hooks_filter *filter);

/* Any thread, any time, also interrupted anywhere; waits for nobody.  The caller owns the
 * block. */
bool heap_set_has(const void *block);
bool heap_set_find(const void *block, struct heap_block *ret);
/* Counts the block at its site, now or as soon as heap_lock() is to be had; false without
 * memory.  Takes over the references in *b, but not where it says false. */
bool heap_set_add(const void *block, const struct heap_block *b);
/* Counts it as freed; before the next free() sees it. */
bool heap_set_remove(const void *block);

/* Under heap_lock(): counts what had to wait for it. */
void     heap_set_settle(void);
/* Blocks that found no memory for a site of theirs. */
uint64_t heap_set_lost(void);

#endif
