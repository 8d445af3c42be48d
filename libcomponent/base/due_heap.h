/*
 * due_heap.h - what is due at a time, the soonest first.
 *
 * Who waits has a struct due as its first member.  Equal times come out in any order.
 *
 *   memory   the array is malloc'd, and its owner frees items; what is in it is the caller's
 *   threads  one at a time
 *   source   libcomponent/base/due_heap.c
 */
#ifndef BASE_DUE_HEAP_H
#define BASE_DUE_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct due {
	int64_t at_ns;
	size_t  place; /* from 1; 0: it does not wait */
};

struct due_heap {
	struct due **items; /* from index 1 */
	size_t       count, size;
};

/* Room for so many in all: adding one of them cannot fail.  -ENOMEM. */
int         due_heap_reserve(struct due_heap *h, size_t count);
/* Adds it, or moves it to another time.  -ENOMEM: it does not wait. */
int         due_heap_add(struct due_heap *h, struct due *d, int64_t at_ns);
/* It may be waiting or not. */
void        due_heap_remove(struct due_heap *h, struct due *d);
struct due *due_heap_first(const struct due_heap *h); /* NULL: none waits */

#endif
