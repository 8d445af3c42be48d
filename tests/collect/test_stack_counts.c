/*
 * test_stack_counts.c - counters by stack: sums are exact, whoever adds.
 */
#include <config.h>

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "stack_counts.h"
#include "stack_table.h"

#define THREADS 4
#define ROUNDS  20000
#define STACKS  7

static struct stack_counts sites;

static uint32_t
stack_of(uintptr_t pc)
{
	uintptr_t pcs[2] = { 0x10000 + pc, 0x20000 };

	return stack_table_add(pcs, 2);
}

static void *
add_many(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < ROUNDS; i++)
		stack_counts_add(&sites, stack_of(i % STACKS), SITES_ONE, i);
	return NULL;
}

static void
profile_of(struct profile *p)
{
	profile_init(p, "block");
	p->type_count = 2;
	assert_int_equal(stack_counts_profile(&sites, p), 0);
}

static void
sums_are_exact_when_threads_add_at_once(void **state)
{
	pthread_t      t[THREADS];
	struct profile p;
	int64_t        count = 0, value = 0;
	size_t         lost = 0; /* on a crowded machine the stack table's lock may not be had in time */

	(void)state;
	assert_int_equal(stack_counts_open(&sites), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, add_many, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	profile_of(&p);
	for (size_t i = 0; i < p.count; i++) {
		lost += p.samples[i].stack == STACK_PSEUDO_LOST;
		count += p.samples[i].values[0];
		value += p.samples[i].values[1];
	}
	assert_int_equal(p.count, STACKS + lost);
	profile_release(&p);
	assert_int_equal(count, THREADS * ROUNDS);
	assert_int_equal(value, (int64_t)THREADS * ROUNDS * (ROUNDS - 1) / 2);
	assert_int_equal(stack_counts_count(&sites), STACKS + lost);
	assert_int_equal(stack_counts_total(&sites), THREADS * ROUNDS);
}

static void
fractions_add_up_and_sums_stop_at_the_largest_number(void **state)
{
	struct profile p;

	(void)state;
	stack_counts_forked(&sites);
	for (int i = 0; i < 4; i++)
		stack_counts_add(&sites, stack_of(100), SITES_ONE / 4, UINT64_MAX / 3);
	profile_of(&p);
	assert_int_equal(p.count, 1);
	assert_int_equal(p.samples[0].values[0], 1);
	assert_int_equal(p.samples[0].values[1], INT64_MAX);
	profile_release(&p);
}

static void
what_finds_no_room_is_kept_under_stack_table_full(void **state)
{
	struct profile p;
	int64_t        count = 0, full = 0;
	const int64_t  many = SITES_MAX + 5000;

	(void)state;
	stack_counts_forked(&sites);
	stack_table_set_limit((size_t)64 << 20);
	for (int64_t i = 0; i < many; i++)
		stack_counts_add(&sites, stack_of(1000 + (uintptr_t)i), SITES_ONE, 1);
	profile_of(&p);
	for (size_t i = 0; i < p.count; i++) {
		count += p.samples[i].values[0];
		if (p.samples[i].stack == STACK_PSEUDO_FULL)
			full = p.samples[i].values[0];
	}
	assert_int_equal(count, many);
	assert_true(full >= many - SITES_MAX && full < many / 4);
	profile_release(&p);
}

static void
in_a_child_nothing_has_happened_yet(void **state)
{
	(void)state;
	stack_counts_forked(&sites);
	assert_int_equal(stack_counts_count(&sites), 0);
	assert_int_equal(stack_counts_total(&sites), 0);
	stack_counts_add(&sites, stack_of(3), SITES_ONE, 1);
	assert_int_equal(stack_counts_count(&sites), 1);
	assert_int_equal(stack_counts_total(&sites), 1);
}

/* A child that read the whole table would be given all its pages, at each fork of the program's. */
static void
a_child_is_given_no_pages_of_stacks_that_nobody_has_seen(void **state)
{
	static struct stack_counts sparse;
	struct rusage              before, after;

	(void)state;
	assert_int_equal(stack_counts_open(&sparse), 0);
	stack_counts_add(&sparse, stack_of(3), SITES_ONE, 1);
	getrusage(RUSAGE_SELF, &before);
	stack_counts_forked(&sparse);
	getrusage(RUSAGE_SELF, &after);
	assert_int_equal(stack_counts_total(&sparse), 0);
	assert_true(after.ru_minflt - before.ru_minflt < 100); /* of 384 */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_exact_when_threads_add_at_once),
		cmocka_unit_test(fractions_add_up_and_sums_stop_at_the_largest_number),
		cmocka_unit_test(what_finds_no_room_is_kept_under_stack_table_full),
		cmocka_unit_test(in_a_child_nothing_has_happened_yet),
		cmocka_unit_test(a_child_is_given_no_pages_of_stacks_that_nobody_has_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
