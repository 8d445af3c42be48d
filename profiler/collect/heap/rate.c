/*
 * rate.c - exponential gaps and sample weights, without libm.
 *
 * What a stranger would get wrong: log() and exp() are out of bounds here.  This
 * runs inside malloc, possibly of the loader itself, and a first call through a
 * lazily bound PLT entry enters the loader.  The series below are good to 1e-10,
 * far below what sampling can show.
 *
 * Tests: tests/heap/test_rate.c.
 */
#include <config.h>

#include "rate.h"

#include <string.h>

#define LN2 0.693147180559945309417

/* -ln x for x > 0: exponent and mantissa apart, the latter by atanh's series.  No branch:
 * which half the mantissa lies in is a coin toss, and each wrong guess costs as much as
 * all the rest. */
static double
minus_ln(double x)
{
	const uint64_t root_half = 0x3fe6a09e667f3bcdULL; /* the bits of sqrt(1/2) */
	uint64_t       bits, above;
	double         s, s2;

	memcpy(&bits, &x, sizeof(bits));
	above = bits - root_half;
	bits -= above & (0xfffULL << 52);
	memcpy(&x, &bits, sizeof(x)); /* sqrt(1/2) <= x < sqrt(2) */
	s = (1 - x) / (1 + x);
	s2 = s * s;
	return (s + s) * (1 + s2 * (1. / 3 + s2 * (1. / 5 + s2 * (1. / 7 + s2 * (1. / 9 + s2 * (1. / 11)))))) -
		(double)((int64_t)above >> 52) * LN2;
}

/* 1 - exp(-x) for x >= 0, exact for small x too. */
static double
one_minus_exp(double x)
{
	double sum = 0;

	if (x > 40)
		return 1;
	if (x > 0.25) { /* 1 - (1-a)(1-a) with a of half of it */
		double a = one_minus_exp(x / 2);

		return a * (2 - a);
	}
	for (int k = 12; k >= 1; k--)
		sum = (1 - sum) * x / k;
	return sum;
}

static uint64_t
random_next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1dULL;
}

__attribute__((hot)) int64_t
heap_gap(uint64_t rate, uint64_t *random)
{
	double uniform;

	if (rate <= 1)
		return -1;
	/* 52 bits and a half: never 0, never 1. */
	uniform = ((double)(random_next(random) >> 12) + 0.5) * (1.0 / 4503599627370496.0);
	return (int64_t)(minus_ln(uniform) * (double)rate);
}

/* 1 / (1 - exp(-x)) for 0 < x <= 1: its Laurent series, x^13/74724249600 is left out. */
static double
weight_of_small(double x)
{
	double x2 = x * x;

	return 1 / x + 0.5 + x * (1. / 12 - x2 * (1. / 720 - x2 * (1. / 30240 - x2 * (1. / 1209600 -
		x2 * (1. / 47900160 - x2 * (691. / 1307674368000.))))));
}

uint64_t
heap_weight(size_t size, uint64_t rate)
{
	double x = (double)size / (double)rate;

	if (rate <= 1 || size == 0)
		return HEAP_WEIGHT_ONE;
	return (uint64_t)(HEAP_WEIGHT_ONE * (x <= 1 ? weight_of_small(x) : 1 / one_minus_exp(x)) + 0.5);
}

__attribute__((hot)) uint64_t
heap_weight_bytes(size_t size, uint64_t weight)
{
	return (uint64_t)(((unsigned __int128)size * weight + HEAP_WEIGHT_ONE / 2) / HEAP_WEIGHT_ONE);
}
