/*
 * hooks_large.c - a program that allocates and has 4 MiB before its dynamic section.
 *
 * Tests: tests/hooks/interposition.t
 */
#include <stdio.h>
#include <stdlib.h>

extern const char large[];

int
main(void)
{
	char *volatile block = malloc(100);

	puts(block && large[0] == 1 ? "fine" : "wrong");
	free(block);
	return 0;
}
