/*
 * heap_set.h - the addresses of sampled blocks, where they cannot have a range.
 *
 * Then a sampled block is an ordinary one of the next allocator, and every free()
 * asks here.
 */
#ifndef COLLECT_HEAP_SET_H
#define COLLECT_HEAP_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "heap_site.h"

/* Once; 0 or a negative errno. */
int  heap_set_init(void);
/* Any thread, no lock; for a block that the caller owns. */
bool heap_set_has(const void *block);
bool heap_set_find(const void *block, struct heap_block *ret);
/* Counts the block at its site, which it looks up if need be.  False without memory, or during a fork. */
bool heap_set_add(const void *block, struct heap_block *b);
/* Counts it as freed; before the next free() sees it. */
bool heap_set_remove(const void *block, struct heap_block *ret);

#endif
