/*
 * mix_frames.c - compiled twice, with frame pointers and without: MIX is the name.
 */
#include <config.h>

#include <alloca.h>
#include <stdio.h>
#include <string.h>

#include "mix.h"

static __attribute__((noinline)) void
leaf(int depth)
{
	char text[64];

	for (int i = 0; i < 20; i++)
		snprintf(text, sizeof(text), "%d %g", i, i / (depth + 1.5));
}

static __attribute__((noinline)) void
of_any_size(int depth, mix_fn *next, void *self)
{
	char *room = alloca((size_t)depth * 24 + 16);

	memset(room, depth, (size_t)depth * 24 + 16);
	__asm__ volatile("" : : "r"(room) : "memory");
	next(depth - 1, self);
	__asm__ volatile("" : : "r"(room) : "memory");
}

static __attribute__((noinline)) void
with_arguments_on_the_stack(int a, int b, int c, int d, int e, int f, int depth, mix_fn *next, void *self)
{
	volatile int sum = a + b + c + d + e + f;

	next(depth - 1, self);
	(void)sum;
}

void
MIX(int depth, void *next)
{
	if (depth <= 0)
		leaf(depth);
	else if (depth % 3 == 0)
		of_any_size(depth, (mix_fn *)next, (void *)MIX);
	else if (depth % 3 == 1)
		with_arguments_on_the_stack(1, 2, 3, 4, 5, 6, depth, (mix_fn *)next, (void *)MIX);
	else
		((mix_fn *)next)(depth - 1, (void *)MIX);
	__asm__ volatile("" ::: "memory"); /* no tail call */
}
