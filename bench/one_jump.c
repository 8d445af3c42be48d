/*
 * one_jump.c - to preload: malloc() and free() that only jump to the next ones, for bench/programs.
 *
 * What stands before them pays at least that, whatever it does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static void *first_malloc(size_t size);
static void  first_free(void *block);
static void *(*next_malloc)(size_t) = first_malloc;
static void  (*next_free)(void *) = first_free;

__attribute__((constructor)) static void
find(void)
{
	next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
}

static void *
first_malloc(size_t size)
{
	find();
	return next_malloc(size);
}

static void
first_free(void *block)
{
	find();
	next_free(block);
}

void *
malloc(size_t size)
{
	return next_malloc(size);
}

void
free(void *block)
{
	next_free(block);
}
