/*
 * deep.h - stacks of a known depth: 64 functions with frames of different sizes,
 * each calling the next.
 */
#ifndef BENCH_DEEP_H
#define BENCH_DEEP_H

#define DEEP_MAX 64

typedef void deep_fn(void (*leaf)(void));

static deep_fn *const deep_levels[DEEP_MAX];

/* n is octal: the second level is 001, the last one 077. */
#define DEEP_LEVEL(n)                                                \
	__attribute__((noinline)) static void deep_##n(void (*leaf)(void)) \
	{                                                            \
		volatile char pad[24 + (0##n * 37) % 400];             \
		pad[0] = 1;                                          \
		if (0##n + 1 == DEEP_MAX)                            \
			leaf();                                      \
		else                                                 \
			deep_levels[0##n + 1](leaf);                 \
		(void)pad[0];                                        \
	}
#define DEEP_EIGHT(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
#define DEEP_ALL(X)                                                              \
	DEEP_EIGHT(X, 0) DEEP_EIGHT(X, 1) DEEP_EIGHT(X, 2) DEEP_EIGHT(X, 3)      \
	DEEP_EIGHT(X, 4) DEEP_EIGHT(X, 5) DEEP_EIGHT(X, 6) DEEP_EIGHT(X, 7)
#define DEEP_NAME(n) deep_##n,

DEEP_ALL(DEEP_LEVEL)
static deep_fn *const deep_levels[DEEP_MAX] = { DEEP_ALL(DEEP_NAME) };

/* Calls leaf with so many frames of ours below it. */
static inline void
deep_call(unsigned frames, void (*leaf)(void))
{
	deep_levels[DEEP_MAX - frames](leaf);
}

#endif
