/*
 * test_table.c - keys that somebody has made to fall into one slot.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "table.h"

#define KEYS   20000
#define GOLDEN 0x9e3779b97f4a7c15u

/* The longest run of taken slots: what a key that is not there may cost. */
static size_t
longest_run(const struct table *t)
{
	size_t longest = 0, run = 0;

	for (size_t i = 0; i < t->size; i++) {
		run = t->slots[i].value ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

/* The number by which GOLDEN is to be multiplied to get 1. */
static uint64_t
inverse(void)
{
	uint64_t x = GOLDEN;

	for (int i = 0; i < 6; i++)
		x *= 2 - GOLDEN * x;
	return x;
}

static void
put_all(uint64_t (*key)(uint64_t i))
{
	struct table t = { 0 };

	for (uint64_t i = 0; i < KEYS; i++)
		assert_int_equal(table_put(&t, key(i), i + 1), 0);
	for (uint64_t i = 0; i < KEYS; i++)
		assert_int_equal(table_get(&t, key(i)), i + 1);
	assert_in_range(longest_run(&t), 1, 500);
	for (uint64_t i = 0; i < KEYS; i++)
		assert_int_equal(table_remove(&t, key(i)), i + 1);
	assert_int_equal(t.count, 0);
	table_release(&t);
}

/* Times GOLDEN it has no bits but 20 to 31, and 52 to 63. */
static uint64_t
made_for_one_slot(uint64_t i)
{
	return inverse() * (i << 20 & 0xffffffff) + (i >> 12 << 52);
}

static uint64_t
high_bits(uint64_t i)
{
	return i << 49;
}

static uint64_t
addresses(uint64_t i)
{
	return 0x7f1200000000 + i * 16;
}

static void
no_choice_of_keys_makes_them_share_a_slot(void **state)
{
	(void)state;
	put_all(made_for_one_slot);
	put_all(high_bits);
	put_all(addresses);
}

static uint64_t
first_step(uint64_t word)
{
	__extension__ unsigned __int128 product = (unsigned __int128)(2 * sizeof(word) ^ word) * GOLDEN;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static void
texts_of_one_hash_have_others_with_a_seed(void **state)
{
	const uint64_t a[2] = { 1, 0 }, b[2] = { 2, first_step(1) ^ first_step(2) };

	(void)state;
	assert_int_equal(table_hash(0, a, sizeof(a)), table_hash(0, b, sizeof(b)));
	assert_int_not_equal(table_hash(table_seed(), a, sizeof(a)), table_hash(table_seed(), b, sizeof(b)));
}

/* Where one step after the other only multiplies, these are of one hash whatever the seed is. */
static void
texts_that_differ_in_their_highest_bits_have_other_hashes(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 1000; seed++)
		assert_int_not_equal(table_hash(seed, "AAAAAAAAAAAAAAAA", 16), table_hash(seed, "AAAAAAA\xC1" "AAAAEAA\xC1", 16));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_choice_of_keys_makes_them_share_a_slot),
		cmocka_unit_test(texts_of_one_hash_have_others_with_a_seed),
		cmocka_unit_test(texts_that_differ_in_their_highest_bits_have_other_hashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
