/*
 * hooks_jemalloc.c - blocks of malloc go through jemalloc's own functions, which
 * know nothing of us, while every allocation is a sample.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <component/profiler.h>

extern void   sdallocx(void *p, size_t size, int flags);
extern void   dallocx(void *p, int flags);
extern void  *mallocx(size_t size, int flags);
extern void  *rallocx(void *p, size_t size, int flags);
extern size_t xallocx(void *p, size_t size, size_t extra, int flags);
extern size_t sallocx(const void *p, int flags);

int
main(void)
{
	if (component_profiler_set_heap_rate(1) < 0)
		return 1;
	for (size_t i = 1; i < 20000; i++) {
		char *p = malloc(i), *q = mallocx(i, 0), *r = malloc(i);

		if (sallocx(p, 0) < i)
			return 2;
		xallocx(p, i + 10, 0, 0);
		sdallocx(p, i, 0);
		q = realloc(q, i * 2);
		memset(q, 1, i * 2);
		free(q);
		r = rallocx(r, i * 3, 0);
		memset(r, 2, i * 3);
		i % 2 ? dallocx(r, 0) : free(r);
	}
	puts("fine");
	return 0;
}
