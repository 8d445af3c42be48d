/*
 * hooks_own_malloc.c - a program that defines malloc itself, linked with the hooks.
 */
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);

static volatile int said;

void *
malloc(size_t size)
{
	if (!said) {
		said = 1;
		if (write(1, "own malloc called\n", 18) < 0)
			return NULL;
	}
	return __libc_malloc(size);
}

#include "hooks_index.c"
