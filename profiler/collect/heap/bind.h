/*
 * bind.h - are the hooks in charge of malloc?
 */
#ifndef COLLECT_HEAP_BIND_H
#define COLLECT_HEAP_BIND_H

#include <stdbool.h>

#include "hot.h"

/* Tries, once, and again after a lack of memory; true if allocations can be seen. */
bool        heap_bind(void);
/* The same, without trying. */
static inline bool
heap_bound(void)
{
	return heap_hot.bound;
}
/* What keeps it, or "". */
const char *heap_bind_status(void);
/* Whose malloc is behind the hooks; "" before they are. */
const char *heap_bind_in_force(void);

#endif
