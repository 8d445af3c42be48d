/*
 * hooks_family.c - blocks from every function of the malloc family, on two threads: each is
 * written, some change their size, all are given back.
 */
#define main index_main
#include "hooks_index.c"
#undef main

#include <malloc.h>
#include <pthread.h>

static int
works(void *block)
{
	if (!block)
		return 0;
	memset(block, 1, 100);
	block = realloc(block, 1000);
	free(block);
	return block != NULL;
}

static void *
all(void *arg)
{
	void *aligned = NULL;
	int   fine = 1;

	for (int i = 0; i < 1000; i++)
		fine &= works(malloc(100)) && works(calloc(10, 10)) && works(realloc(NULL, 100)) &&
			works(reallocarray(malloc(5), 10, 10)) && works(aligned_alloc(64, 128)) &&
			works(memalign(64, 100)) && works(valloc(100)) && works(pvalloc(100)) &&
			posix_memalign(&aligned, 64, 100) == 0 && works(aligned) && works(strdup("a string") ? malloc(100) : NULL);
	return fine ? arg : NULL;
}

int
main(int argc, char **argv)
{
	pthread_t other;
	void     *r = NULL;
	int       bad = pthread_create(&other, NULL, all, &other) || !all(&bad) || pthread_join(other, &r) || !r;

	printf("%s\n", bad ? "wrong" : "fine");
	return bad ? bad : index_main(argc, argv);
}
