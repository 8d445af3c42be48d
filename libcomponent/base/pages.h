/*
 * pages.h - memory from mmap(), never from the daemon's malloc, which may be what is being
 * looked at, or hang.
 *
 * What a stranger would get wrong: where fork may come between, the pointer is taken away
 * first and the memory given back afterwards, or a child has a pointer to nothing.
 */
#ifndef BASE_PAGES_H
#define BASE_PAGES_H

#include <stddef.h>
#include <sys/mman.h>

/* Zeroed; NULL and errno: there is none. */
static inline void *
pages_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* The same for what is mostly never touched: it does not count as taken until it is. */
static inline void *
pages_map_sparse(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* NULL is fine. */
static inline void
pages_unmap(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}

/* An array of room items, 0 for none yet, becomes one of more.  NULL: it stays as it is. */
static inline void *
pages_resize(void *array, size_t room, size_t more, size_t item)
{
	size_t bytes;
	void  *p;

	if (__builtin_mul_overflow(more, item, &bytes))
		return NULL;
	p = room ? mremap(array, room * item, bytes, MREMAP_MAYMOVE) : pages_map(bytes);
	return p == MAP_FAILED ? NULL : p;
}

/* The same, of twice as many, or of first. */
static inline void *
pages_grow(void *array, size_t *room, size_t first, size_t item)
{
	size_t more = *room ? *room * 2 : first;
	void  *p = pages_resize(array, *room, more, item);

	if (p)
		*room = more;
	return p;
}

#endif
