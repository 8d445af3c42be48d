/*
 * stress_plugin.c - an object that is loaded, works a little, and is gone; built
 * twice, so that one takes the place of the other.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef WHICH
#define WHICH 0
#endif

#if WHICH
/* Moves everything, so that the rules of one are wrong for the other. */
static char padding[70000] = { 1 };
#endif

static volatile unsigned spin;

static __attribute__((noinline)) void
plugin_burn(uint64_t n)
{
	volatile char local[64 + 512 * WHICH];

	local[n % 64] = 1;
	for (unsigned i = 0; i < 20000; i++)
		spin += i + (unsigned)local[n % 64];
}

void *plugin_work(size_t size, uint64_t random);

void *
plugin_work(size_t size, uint64_t random)
{
	char *block = malloc(size);

#if WHICH
	padding[random % sizeof(padding)]++;
#endif
	for (unsigned i = 0; i < 50; i++) {
		free(malloc(1 + (random >> i % 32) % 4096));
		plugin_burn(random);
	}
	memset(block, 'a' + WHICH, size);
	return block;
}
