/*
 * pages.h - memory of a sampler: from mmap(), never from the daemon's malloc, which may
 * be what is being looked at, or hang.
 */
#ifndef COLLECT_PAGES_H
#define COLLECT_PAGES_H

#include <stddef.h>
#include <sys/mman.h>

/* Zeroed; NULL: there is none.  munmap() gives it back. */
static inline void *
pages_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* An array of room items, 0 for none yet, becomes one of twice as many, or of first.  NULL:
 * it stays as it is. */
static inline void *
pages_grow(void *array, size_t *room, size_t first, size_t item)
{
	size_t more = *room ? *room * 2 : first;
	void  *p = *room ? mremap(array, *room * item, more * item, MREMAP_MAYMOVE) : pages_map(more * item);

	if (!p || p == MAP_FAILED)
		return NULL;
	*room = more;
	return p;
}

#endif
