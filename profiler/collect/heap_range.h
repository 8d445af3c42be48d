/*
 * heap_range.h - the address range in which sampled blocks live.
 *
 * free() then tells a sampled block by its address alone.  The range is reserved
 * without access and opened from its start on as blocks need it.
 */
#ifndef COLLECT_HEAP_RANGE_H
#define COLLECT_HEAP_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap_site.h"

#define HEAP_RANGE_MAX ((size_t)32 << 30) /* bytes of address space, none of memory */
#define HEAP_RANGE_MIN ((size_t)16 << 20) /* smaller, a few large blocks would fill it */

/* Once.  0 or a negative errno. */
int  heap_range_reserve(size_t bytes);
void heap_range_bounds(uintptr_t *ret_start, size_t *ret_size);
/* Any thread; NULL when full or the kernel gives no memory.  align is 0 or a power
 * of two.  Counts the block at its site, which it looks up if need be. */
void *heap_range_allocate(size_t align, bool zeroed, struct heap_block *b);
/*
 * Another size for a block, which is counted as a new one and the end of the old: in
 * place, or by moving its pages.  NULL where neither can be done, for small ones
 * always: then allocate, copy and release.  *block is the caller's until then.
 */
void *heap_range_resize(void *block, struct heap_block *b);
/* Of a block that the caller owns; false: no block begins there. */
bool heap_range_find(const void *block, struct heap_block *ret);
/* Any thread; what is not a block is left alone. */
void heap_range_release(void *block);
size_t heap_range_opened(void); /* bytes */

#endif
