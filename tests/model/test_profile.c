/*
 * test_profile.c - struct profile: adding, merging, comments, release.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "profile.h"
#include "stack_table.h"

static uint32_t
stack_of(uintptr_t seed)
{
	uintptr_t pcs[3] = { 0x10000 + seed, 0x20000, 0x30000 };

	return stack_table_add(pcs, 3);
}

static void
equal_stacks_merge_and_the_largest_comes_first(void **state)
{
	struct profile        p;
	struct profile_sample s;
	int64_t               total = 0;
	size_t                i;

	(void)state;
	profile_init(&p, "test");
	p.type_count = 2;
	for (i = 0; i < 10000; i++) {
		memset(&s, 0, sizeof(s));
		s.stack = stack_of(i % 100);
		s.values[0] = 1;
		s.values[1] = (int64_t)(i % 100) + 1;
		assert_int_equal(profile_add(&p, &s), 0);
	}
	assert_int_equal(p.count, 10000);
	profile_merge(&p);
	assert_int_equal(p.count, 100);
	for (i = 0; i < p.count; i++) {
		assert_int_equal(p.samples[i].values[0], 100);
		assert_int_equal(p.samples[i].values[1], 100 * (100 - (int64_t)i));
		total += p.samples[i].values[1];
	}
	assert_int_equal(total, 100 * 5050);
	profile_release(&p);
	assert_int_equal(stack_table_bytes(), 0);
}

static void
add_sizes(struct profile *p, uintptr_t seed, int64_t objects, int64_t size)
{
	struct profile_sample s = { .stack = stack_of(seed), .event_bytes = size,
		.values = { objects, objects * size }, .counted_values = { objects, objects * size } };

	assert_int_equal(profile_add(p, &s), 0);
}

static void
a_delta_is_what_was_added_and_forgets_what_did_not_change(void **state)
{
	struct profile before, after;

	(void)state;
	profile_init(&before, "test");
	profile_init(&after, "test");
	before.type_count = after.type_count = 2;
	before.time_ns = 12;
	before.begun_ns = 5;
	after.time_ns = 5; /* the clock was set back */
	after.begun_ns = 12;
	before.lost = 3;
	after.lost = 4;
	add_sizes(&before, 1, 10, 100);
	add_sizes(&before, 2, 1, 50);
	add_sizes(&before, 3, 7, 10);
	add_sizes(&after, 1, 10, 100);
	add_sizes(&after, 3, 5, 10);
	add_sizes(&after, 2, 1, 50);
	add_sizes(&after, 2, 2, 300); /* of another size: a sample of its own */
	add_sizes(&after, 4, 1, 8);
	assert_int_equal(profile_subtract(&after, &before), 0);
	assert_int_equal(before.count, 0);
	assert_int_equal(after.count, 3);
	assert_int_equal(after.duration_ns, 7);
	assert_int_equal(after.lost, 1);
	assert_int_equal(after.samples[0].values[0], 2);
	assert_int_equal(after.samples[0].values[1], 600);
	assert_int_equal(after.samples[0].event_bytes, 300);
	assert_int_equal(after.samples[1].values[1], 8);
	assert_int_equal(after.samples[1].event_bytes, 8);
	assert_int_equal(after.samples[2].values[0], -2);
	assert_int_equal(after.samples[2].values[1], -20);
	assert_int_equal(after.samples[2].event_bytes, 10);
	profile_release(&after);
	assert_int_equal(stack_table_bytes(), 0); /* every reference was given back */
}

static void
a_copy_has_the_same_samples_and_outlives_the_profile(void **state)
{
	struct profile p, copy;

	(void)state;
	profile_init(&p, "test");
	p.type_count = 2;
	p.begun_ns = 5;
	profile_comment(&p, "a comment");
	add_sizes(&p, 1, 10, 100);
	add_sizes(&p, 2, 1, 50);
	assert_int_equal(profile_copy(&p, &copy), 0);
	profile_release(&p);
	assert_int_equal(copy.count, 2);
	assert_int_equal(copy.begun_ns, 5);
	assert_string_equal(copy.comments, "a comment");
	assert_int_equal(copy.samples[0].values[1], 1000);
	assert_int_equal(copy.samples[1].event_bytes, 50);
	profile_release(&copy);
	assert_int_equal(stack_table_bytes(), 0); /* every reference was given back */
}

static void
blocks_of_different_size_stay_apart(void **state)
{
	struct profile        p;
	struct profile_sample s = { 0 };

	(void)state;
	profile_init(&p, "test");
	p.type_count = 1;
	s.values[0] = 1;
	for (s.event_bytes = 16; s.event_bytes <= 64; s.event_bytes *= 2) {
		s.stack = stack_of(1);
		assert_int_equal(profile_add(&p, &s), 0);
		s.stack = stack_of(1);
		assert_int_equal(profile_add(&p, &s), 0);
	}
	profile_merge(&p);
	assert_int_equal(p.count, 3);
	assert_int_equal(p.samples[0].values[0], 2);
	profile_release(&p);
	assert_int_equal(stack_table_bytes(), 0);
}

static void
an_empty_profile_merges_and_releases(void **state)
{
	struct profile p;

	(void)state;
	profile_init(&p, "test");
	profile_merge(&p);
	assert_int_equal(p.count, 0);
	profile_release(&p);
	profile_init(&p, "again");
	assert_string_equal(p.name, "again");
	profile_release(&p);
}

static void
comments_are_lines_and_one_that_does_not_fit_is_left_out(void **state)
{
	struct profile p;
	char           filler[101];
	size_t         before;
	int            i;

	(void)state;
	profile_init(&p, "test");
	profile_comment(&p, "samples: %d", 7);
	profile_comment(&p, "lost: %d", 0);
	assert_string_equal(p.comments, "samples: 7\nlost: 0");
	memset(filler, 'x', sizeof(filler) - 1);
	filler[sizeof(filler) - 1] = '\0';
	for (i = 0; i < 100; i++)
		profile_comment(&p, "%s", filler);
	before = strlen(p.comments);
	assert_true(before < sizeof(p.comments));
	assert_int_equal(p.comments[before - 1], 'x');
	assert_true((before - strlen("samples: 7\nlost: 0")) % 101 == 0);
	profile_release(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_stacks_merge_and_the_largest_comes_first),
		cmocka_unit_test(a_delta_is_what_was_added_and_forgets_what_did_not_change),
		cmocka_unit_test(a_copy_has_the_same_samples_and_outlives_the_profile),
		cmocka_unit_test(blocks_of_different_size_stay_apart),
		cmocka_unit_test(an_empty_profile_merges_and_releases),
		cmocka_unit_test(comments_are_lines_and_one_that_does_not_fit_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
