/*
 * test_accuracy.c - what the heap profile says against what was allocated.
 *
 * Four call sites allocate blocks of 256 bytes to 1 MiB, as many of each power of
 * two, in shares of 40, 30, 20 and 10 %; 1 GiB of it is freed again, 256 MiB lives.

 */
#include <config.h>

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

#define SITES      4
#define LIVE       ((size_t)256 << 20)
#define FREED      ((size_t)1 << 30)
#define BLOCKS_MAX 100000
#define SEEDS      20
#define DEFAULT_RATE ((uint64_t)512 << 10)

SITE static void *
allocate_40(size_t size)
{
	return malloc(size);
}

SITE static void *
allocate_30(size_t size)
{
	return calloc(1, size);
}

SITE static void *
allocate_20(size_t size)
{
	return realloc(malloc(0), size);
}

SITE static void *
allocate_10(size_t size)
{
	return aligned_alloc(64, size / 64 * 64);
}

static void *(*const sites[SITES])(size_t) = { allocate_40, allocate_30, allocate_20, allocate_10 };

struct block {
	void  *memory;
	size_t size;
	int    site;
};

struct truth {
	double alloc[SITES], live[SITES];
	/* of the estimates, as sampling theory has it */
	double alloc_variance[SITES], live_variance[SITES];
};

static struct block blocks[BLOCKS_MAX];
static size_t       block_count;

static uint64_t
draw(uint64_t *x)
{
	*x ^= *x << 13, *x ^= *x >> 7, *x ^= *x << 17;
	return *x;
}

/* size^2 (1/p - 1), p being the probability to be a sample. */
static double
variance(double size, double rate)
{
	return size * size / -expm1(-size / rate) - size * size;
}

static void
block_add(uint64_t *x, struct truth *t, double rate)
{
	struct block *b = &blocks[block_count++];
	uint64_t      r = draw(x) % 10;

	b->site = r < 4 ? 0 : r < 7 ? 1 : r < 9 ? 2 : 3;
	b->size = (size_t)256 << (draw(x) % 12);
	b->size = (b->size + draw(x) % b->size) / 64 * 64;
	b->memory = sites[b->site](b->size);
	assert_non_null(b->memory);
	t->alloc[b->site] += (double)b->size;
	t->live[b->site] += (double)b->size;
	t->alloc_variance[b->site] += variance((double)b->size, rate);
	t->live_variance[b->site] += variance((double)b->size, rate);
}

static void
block_free(size_t i, struct truth *t, double rate)
{
	struct block *b = &blocks[i];

	free(b->memory);
	t->live[b->site] -= (double)b->size;
	t->live_variance[b->site] -= variance((double)b->size, rate);
	*b = blocks[--block_count];
}

/* Allocates until so much was, keeping at most LIVE of it. */
static struct truth
work(uint64_t x, double rate)
{
	struct truth t = { { 0 }, { 0 }, { 0 }, { 0 } };
	double       all = 0, live = 0;

	while (all < (double)(FREED + LIVE)) {
		block_add(&x, &t, rate);
		all = t.alloc[0] + t.alloc[1] + t.alloc[2] + t.alloc[3];
		live = t.live[0] + t.live[1] + t.live[2] + t.live[3];
		while (live > (double)LIVE) {
			size_t i = draw(&x) % block_count;

			live -= (double)blocks[i].size;
			block_free(i, &t, rate);
		}
	}
	return t;
}

static void
at_4_KiB_every_site_is_right_within_5_percent(void **state)
{
	struct site_sum before[SITES], s;
	struct truth    t;

	(void)state;
	for (int i = 0; i < SITES; i++)
		before[i] = site_sum((void *)sites[i]);
	heap_set_rate(4096);
	t = work(4242, 4096);
	for (int i = 0; i < SITES; i++) {
		s = site_sum((void *)sites[i]);
		print_message("# site %d: alloc_space %+.2f %%, inuse_space %+.2f %%\n", i,
			100 * ((double)(s.values[1] - before[i].values[1]) / t.alloc[i] - 1),
			100 * ((double)(s.values[3] - before[i].values[3]) / t.live[i] - 1));
		assert_true(fabs((double)(s.values[1] - before[i].values[1]) / t.alloc[i] - 1) < 0.05);
		assert_true(fabs((double)(s.values[3] - before[i].values[3]) / t.live[i] - 1) < 0.05);
	}
	heap_set_rate(0);
	while (block_count > 0)
		block_free(block_count - 1, &t, 4096);
	for (int i = 0; i < SITES; i++)
		assert_int_equal(site_sum((void *)sites[i]).values[3], before[i].values[3]);
}

/* Sums over all seeds, of estimates, truths and variances. */
static struct truth seen, truth;

/* On a thread of its own: threads that have not sampled yet begin at the seed. */
static void *
run(void *arg)
{
	uint64_t        seed = *(uint64_t *)arg;
	struct site_sum before[SITES], s;
	struct truth    t;

	heap_set_seed(seed);
	for (int i = 0; i < SITES; i++)
		before[i] = site_sum((void *)sites[i]);
	heap_set_rate(DEFAULT_RATE);
	t = work(seed * 7919 + 1, (double)DEFAULT_RATE);
	heap_set_rate(0);
	for (int i = 0; i < SITES; i++) {
		s = site_sum((void *)sites[i]);
		seen.alloc[i] += (double)(s.values[1] - before[i].values[1]);
		seen.live[i] += (double)(s.values[3] - before[i].values[3]);
		truth.alloc[i] += t.alloc[i];
		truth.live[i] += t.live[i];
		truth.alloc_variance[i] += t.alloc_variance[i];
		truth.live_variance[i] += t.live_variance[i];
	}
	while (block_count > 0)
		block_free(block_count - 1, &t, (double)DEFAULT_RATE);
	return NULL;
}

/* Each site within 3.5 sigma of the truth, all together within 2 %. */
static void
check(const char *what, const double *got, const double *want, const double *variances)
{
	double all = 0, all_want = 0;

	for (int i = 0; i < SITES; i++) {
		double error = got[i] / want[i] - 1, sigma = sqrt(variances[i]) / want[i];

		print_message("# site %d: %s %+.2f %%, one sigma is %.2f %%\n", i, what, 100 * error, 100 * sigma);
		assert_true(fabs(error) < 3.5 * sigma);
		all += got[i];
		all_want += want[i];
	}
	print_message("# all: %s %+.2f %%\n", what, 100 * (all / all_want - 1));
	assert_true(fabs(all / all_want - 1) < 0.02);
}

static void
at_the_default_rate_the_mean_of_20_seeds_is_right(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		pthread_t t;

		assert_int_equal(pthread_create(&t, NULL, run, &seed), 0);
		assert_int_equal(pthread_join(t, NULL), 0);
	}
	check("alloc_space", seen.alloc, truth.alloc, truth.alloc_variance);
	check("inuse_space", seen.live, truth.live, truth.live_variance);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_4_KiB_every_site_is_right_within_5_percent),
		cmocka_unit_test(at_the_default_rate_the_mean_of_20_seeds_is_right),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
