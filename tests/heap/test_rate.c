/*
 * test_rate.c - gaps and weights against libm, and that they are unbiased.
 */
#include <config.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "heap/rate.h"

#define RATE ((uint64_t)512 << 10)

static void
gaps_have_the_mean_and_the_spread_of_an_exponential(void **state)
{
	uint64_t random = 12345;
	double   sum = 0, squares = 0, mean, n = 400000;

	(void)state;
	for (int i = 0; i < (int)n; i++) {
		double g = (double)heap_gap(RATE, &random) / (double)RATE;

		assert_true(g >= 0);
		sum += g;
		squares += g * g;
	}
	mean = sum / n;
	assert_true(fabs(mean - 1) < 0.01);
	assert_true(fabs(squares / n - mean * mean - 1) < 0.03);
}

static void
a_rate_of_one_leaves_no_gap(void **state)
{
	uint64_t random = 1;

	(void)state;
	assert_int_equal(heap_gap(1, &random), -1);
	assert_int_equal(heap_weight(100, 1), HEAP_WEIGHT_ONE);
}

static void
a_weight_is_one_over_the_probability(void **state)
{
	static const size_t sizes[] = { 1, 8, 24, 100, 1000, 4096, 65536, 262144, 524288, 1 << 20, (size_t)1 << 33 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double want = -1 / expm1(-(double)sizes[i] / (double)RATE);
		double got = (double)heap_weight(sizes[i], RATE) / HEAP_WEIGHT_ONE;

		assert_true(fabs(got - want) <= 1.0 / HEAP_WEIGHT_ONE + want * 1e-9);
	}
	assert_int_equal(heap_weight_bytes(1 << 20, HEAP_WEIGHT_ONE), 1 << 20);
	assert_int_equal(heap_weight_bytes((size_t)1 << 47, HEAP_WEIGHT_ONE), (uint64_t)1 << 47);
}

/* What the sampler does, on numbers alone: the sum of weights is the true count. */
static void
sums_of_weights_are_unbiased(void **state)
{
	static const size_t sizes[] = { 48, 700, 9000, 70000 };
	uint64_t            random = 777;
	double              n = 3000000;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		uint64_t weights = 0;
		int64_t  left = heap_gap(16384, &random);

		for (int k = 0; k < (int)n; k++) {
			left -= (int64_t)sizes[i];
			if (left >= 0)
				continue;
			weights += heap_weight(sizes[i], 16384);
			left = heap_gap(16384, &random);
		}
		assert_true(fabs((double)weights / HEAP_WEIGHT_ONE / n - 1) < 0.05);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gaps_have_the_mean_and_the_spread_of_an_exponential),
		cmocka_unit_test(a_rate_of_one_leaves_no_gap),
		cmocka_unit_test(a_weight_is_one_over_the_probability),
		cmocka_unit_test(sums_of_weights_are_unbiased),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
