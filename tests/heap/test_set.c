/*
 * test_set.c - addresses of sampled blocks, and what is owed to their sites.
 */
#include <config.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "heap/lock.h"
#include "heap/set.h"
#include "labels.h"
#include "stack_table.h"

static uint32_t site;

static struct heap_block
block_of(size_t size)
{
	return (struct heap_block){ .size = size, .weight = 65536, .site = site };
}

static void *
address(size_t i)
{
	return (void *)(0x100000 + i * 48);
}

static size_t
memory(void)
{
	size_t pages = 0;
	FILE  *f = fopen("/proc/self/statm", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%zu", &pages), 1);
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void
an_address_is_found_until_it_is_removed(void **state)
{
	struct heap_block b = block_of(77), found;

	(void)state;
	assert_false(heap_set_has(address(1)));
	assert_true(heap_set_add(address(1), &b));
	assert_true(heap_set_find(address(1), &found));
	assert_int_equal(found.size, 77);
	assert_false(heap_set_has(address(2)));
	assert_true(heap_set_remove(address(1)));
	assert_false(heap_set_has(address(1)));
	assert_false(heap_set_remove(address(1)));
}

static void
a_block_that_comes_and_goes_while_nobody_can_count_takes_no_more_memory(void **state)
{
	struct heap_lock_hold hold;
	uintptr_t             pc = 0x2000;
	size_t                before = memory();
	int                   kept = 0;

	(void)state;
	assert_true(heap_lock(&hold));
	for (int i = 0; i < 1000; i++) {
		struct heap_block b = { .size = 48, .weight = 65536, .stack = stack_table_add(&pc, 1) };

		kept += heap_set_add(address(7), &b);
		heap_set_remove(address(7));
	}
	assert_in_range(kept, 1, 999);
	assert_true(memory() < before + 65536);
	heap_set_settle();
	heap_unlock(&hold);
	assert_true(heap_set_add(address(7), &(struct heap_block){ .size = 48, .weight = 65536, .site = site }));
	assert_true(heap_set_remove(address(7)));
}

static void
two_hundred_thousand_are_kept_apart(void **state)
{
	struct heap_block found;

	(void)state;
	for (size_t i = 0; i < 200000; i++) {
		struct heap_block b = block_of(i);

		assert_true(heap_set_add(address(i), &b));
	}
	for (size_t i = 0; i < 200000; i++) {
		assert_true(heap_set_find(address(i), &found));
		assert_int_equal(found.size, i);
	}
	assert_false(heap_set_has(address(200001)));
	for (size_t i = 0; i < 200000; i++)
		assert_true(heap_set_remove(address(i)));
	for (size_t i = 0; i < 200000; i++)
		assert_false(heap_set_has(address(i)));
}

static void
coming_and_going_takes_no_more_memory(void **state)
{
	struct heap_block b = block_of(1);
	size_t            before = 0;

	(void)state;
	for (size_t i = 0; i < 4000000; i++) {
		if (i == 1000000)
			before = memory();
		assert_true(heap_set_add(address(i), &b));
		if (i >= 1000)
			assert_true(heap_set_remove(address(i - 1000)));
	}
	assert_true(memory() <= before + (1 << 20));
}

/* An allocator's own door freed the block; the next sample there replaces it. */
static void
an_entry_left_behind_is_replaced(void **state)
{
	struct heap_block old = block_of(10), new = block_of(20), found;
	struct heap_counts before, after;
	struct heap_site_key key;

	(void)state;
	assert_int_equal(1, heap_site_read(0, false, &key, &before));
	assert_true(heap_set_add(address(9000000), &old));
	assert_true(heap_set_add(address(9000000), &new));
	assert_true(heap_set_find(address(9000000), &found));
	assert_int_equal(found.size, 20);
	assert_true(heap_set_remove(address(9000000)));
	assert_false(heap_set_has(address(9000000)));
	assert_int_equal(1, heap_site_read(0, false, &key, &after));
	assert_int_equal(after.alloc_objects - before.alloc_objects, 2);
	assert_int_equal(after.free_objects - before.free_objects, 2);
	assert_int_equal(after.free_bytes - before.free_bytes, 30);
}

static _Atomic int           stop;
static _Atomic(const char *) wrong;

/* Its own addresses, while another thread makes the table grow and turn over.  A sample may be lost
 * where the thread that counts has not got the processor. */
static void *
own_addresses(void *arg)
{
	struct heap_block b = block_of(5);
	size_t            base = 20000000 + (uintptr_t)arg * 1000000, kept = 0;

	while (!stop)
		for (size_t i = 0; i < 200; i++) {
			if (heap_set_has(address(base + i)))
				wrong = "an address is found that was not added";
			if (!heap_set_add(address(base + i), &b))
				continue;
			kept++;
			if (!heap_set_has(address(base + i)) || !heap_set_remove(address(base + i)))
				wrong = "an address is not found that was added";
		}
	if (!kept)
		wrong = "every sample was lost";
	return NULL;
}

static void
readers_find_their_own_while_the_table_changes(void **state)
{
	struct heap_block b = block_of(1);
	pthread_t         t[2];

	(void)state;
	for (uintptr_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, own_addresses, (void *)i), 0);
	for (size_t i = 0; i < 300000; i++)
		assert_true(heap_set_add(address(i), &b));
	for (size_t i = 0; i < 300000; i++)
		assert_true(heap_set_remove(address(i)));
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	if (wrong)
		fail_msg("%s", wrong);
}

/* Their numbers times the set's multiplier begin with so many zeros: they share a bucket in each level. */
static void
a_block_that_finds_no_slot_in_the_last_level_is_refused(void **state)
{
	enum { LEVELS = 6, SLOTS = 7, BITS = 18 };
	struct heap_block b = block_of(1);
	uintptr_t         blocks[LEVELS * SLOTS + 1];
	size_t            n = 0, fit = 0;

	(void)state;
	for (uint64_t y = 1; n <= LEVELS * SLOTS; y++)
		if (y * 0x9e3779b97f4a7c15ULL >> (64 - BITS) == 0)
			blocks[n++] = (uintptr_t)y << 4;
	while (fit < n && heap_set_add((void *)blocks[fit], &b))
		fit++;
	assert_in_range(fit, LEVELS * SLOTS / 2, LEVELS * SLOTS); /* what others have left there takes some */
	assert_true(heap_set_remove((void *)blocks[0]));
	assert_true(heap_set_add((void *)blocks[fit], &b));
	for (size_t i = 1; i <= fit; i++)
		assert_true(heap_set_remove((void *)blocks[i]));
}

static void
distinct(uintptr_t *words, size_t i)
{
	for (size_t k = 0; k < 10; k++)
		words[k] = 0x100000 + i * 16 + k * 4096;
}

/* Last of all: what sites hold they hold for ever. */
static void
sites_leave_half_of_the_memory_to_profiles_that_give_it_back(void **state)
{
	const size_t          limit = (size_t)1 << 20;
	struct heap_lock_hold hold;
	uintptr_t             words[10];
	uint32_t              stack = 0, labels;

	(void)state;
	stack_table_set_limit(limit);
	for (size_t i = 0; i < 10000; i++) {
		distinct(words, i);
		stack = stack_table_add(words, 10);
		assert_true(stack >= STACK_PSEUDO_MAX);
		assert_true(heap_lock(&hold));
		assert_true(heap_site_of(stack, 0, 16) > 0);
		heap_unlock(&hold);
	}
	assert_in_range(heap_site_stackless(), 5000, 7000);
	distinct(words, 0);
	stack = stack_table_add(words, 10);
	for (size_t i = 0; i < 3000; i++) {
		distinct(words, 20000 + i);
		labels = stack_table_add_labels(words, 10, limit / LABELS_PART);
		assert_true(labels >= STACK_PSEUDO_MAX);
		stack_table_ref(stack);
		assert_true(heap_lock(&hold));
		assert_true(heap_site_of(stack, labels, 16) > 0);
		heap_unlock(&hold);
	}
	stack_table_unref(stack);
	assert_in_range(heap_site_unlabelled(), 1500, 2500);
}

static int
set_up(void **state)
{
	struct heap_lock_hold hold;
	uintptr_t             pc = 0x1000;

	(void)state;
	if (heap_lock_init() < 0 || heap_set_init(NULL) < 0 || !heap_lock(&hold))
		return 1;
	site = heap_site_of(stack_table_add(&pc, 1), 0, 1);
	heap_unlock(&hold);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_found_until_it_is_removed),
		cmocka_unit_test(a_block_that_comes_and_goes_while_nobody_can_count_takes_no_more_memory),
		cmocka_unit_test(two_hundred_thousand_are_kept_apart),
		cmocka_unit_test(coming_and_going_takes_no_more_memory),
		cmocka_unit_test(an_entry_left_behind_is_replaced),
		cmocka_unit_test(readers_find_their_own_while_the_table_changes),
		cmocka_unit_test(a_block_that_finds_no_slot_in_the_last_level_is_refused),
		cmocka_unit_test(sites_leave_half_of_the_memory_to_profiles_that_give_it_back),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
