/*
 * test_trace.c - struct trace: adding, sorting, texts, comments, release.
 */
#include <config.h>

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "skip.h"
#include "stack_table.h"
#include "trace.h"

static uint32_t
stack_of(uintptr_t seed)
{
	uintptr_t pcs[3] = { 0x10000 + seed, 0x20000, 0x30000 };

	return stack_table_add(pcs, 3);
}

static void
add(struct trace *t, uint64_t time_ns, uint64_t value, uint32_t stack)
{
	struct trace_record r = { .time_ns = time_ns, .type = TRACE_LOG, .value = value, .stack = stack };

	assert_int_equal(trace_add(t, &r), 0);
}

static void
a_trace_owns_its_stacks_until_it_is_released(void **state)
{
	struct trace        t;
	struct trace_thread thread = { .tid = 7, .name = "worker" };

	(void)state;
	trace_init(&t);
	for (uint64_t i = 0; i < 5000; i++)
		add(&t, i, i, i % 3 ? stack_of(i % 100) : 0);
	for (int i = 0; i < 300; i++) {
		thread.tid = i;
		thread.stack = stack_of((uintptr_t)i);
		assert_int_equal(trace_add_thread(&t, &thread), 0);
	}
	assert_int_equal(t.count, 5000);
	assert_int_equal(t.thread_count, 300);
	assert_int_equal(t.records[4999].value, 4999);
	assert_int_equal(t.threads[299].tid, 299);
	assert_string_equal(t.threads[299].name, "worker");
	trace_release(&t);
	assert_int_equal(stack_table_bytes(), 0);
	trace_init(&t);
	add(&t, 1, 1, stack_of(1));
	trace_release(&t);
	trace_release(&t);
	assert_int_equal(stack_table_bytes(), 0);
}

/* Runs of several sources one after the other, many of one time; value is the order. */
static void
records_of_one_time_stay_in_the_order_they_were_added(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 40; seed++) {
		struct trace t;
		unsigned     x = seed * 2654435761u + 1;
		size_t       count = seed < 8 ? seed : seed * 137;

		trace_init(&t);
		for (uint64_t i = 0; i < count; i++) {
			x = x * 1103515245u + 12345;
			/* odd seeds: four sorted sources; even ones: no order at all */
			add(&t, seed % 2 ? i % (count / 4 + 1) : x >> 24, i, 0);
		}
		assert_int_equal(trace_sort(&t), 0);
		assert_int_equal(t.count, count);
		for (size_t i = 1; i < count; i++) {
			assert_true(t.records[i - 1].time_ns <= t.records[i].time_ns);
			if (t.records[i - 1].time_ns == t.records[i].time_ns)
				assert_true(t.records[i - 1].value < t.records[i].value);
		}
		trace_release(&t);
	}
}

static void
texts_are_kept_once_in_a_row_and_cut_between_characters(void **state)
{
	struct trace t;
	uint32_t     a, b;
	char         longest[40000];

	(void)state;
	trace_init(&t);
	assert_string_equal(trace_string(&t, 0), "");
	assert_int_equal(trace_text(&t, "", 10), 0);
	assert_int_equal(trace_text(&t, NULL, 10), 0);
	assert_int_equal(trace_text(&t, "a", 0), 0);
	a = trace_text(&t, "reconcile", 100);
	assert_int_not_equal(a, 0);
	assert_int_equal(trace_text(&t, "reconcile", 100), a);
	b = trace_text(&t, "concile", 100);
	assert_int_not_equal(b, a);
	assert_int_equal(trace_text(&t, "concile!", 7), b);
	assert_string_equal(trace_string(&t, a), "reconcile");
	assert_string_equal(trace_string(&t, b), "concile");
	assert_string_equal(trace_string(&t, trace_text(&t, "gr\xc3\xb6\xc3\x9f""e", 4)), "gr\xc3\xb6");
	assert_string_equal(trace_string(&t, trace_text(&t, "gr\xc3\xb6\xc3\x9f""e", 5)), "gr\xc3\xb6");
	assert_string_equal(trace_string(&t, trace_text(&t, "gr\xc3\xb6\xc3\x9f""e", 6)), "gr\xc3\xb6\xc3\x9f");
	assert_int_equal(trace_text(&t, "\xc3\xb6", 1), 0);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	assert_string_equal(trace_string(&t, trace_text(&t, longest, SIZE_MAX)), longest);
	assert_string_equal(trace_string(&t, a), "reconcile");
	assert_string_equal(trace_string(&t, 0), "");
	assert_int_equal(t.texts[0], 0);
	assert_string_equal(trace_string(&t, UINT32_MAX), "");
	trace_release(&t);
}

static void
a_comment_that_does_not_fit_is_left_out_whole(void **state)
{
	struct trace t;

	(void)state;
	trace_init(&t);
	trace_comment(&t, "source: %s", "perf_event_open");
	trace_comment(&t, "lost: %d", 17);
	assert_string_equal(t.comments, "source: perf_event_open\nlost: 17");
	trace_comment(&t, "%0*d", TRACE_COMMENTS_MAX, 1);
	assert_string_equal(t.comments, "source: perf_event_open\nlost: 17");
	trace_comment(&t, "%0*d", (int)(TRACE_COMMENTS_MAX - strlen(t.comments) - 2), 1);
	assert_int_equal(strlen(t.comments), TRACE_COMMENTS_MAX - 1);
	trace_comment(&t, "x");
	assert_int_equal(strlen(t.comments), TRACE_COMMENTS_MAX - 1);
	trace_release(&t);
}

static void
nothing_of_it_comes_from_malloc(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	(void)state;
	SKIP("a sanitizer has a malloc of its own, which mallinfo does not count");
#else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	struct mallinfo before = mallinfo(), after;
	struct trace    t;

	(void)state;
	trace_init(&t);
	for (uint64_t i = 0; i < 3000; i++)
		add(&t, 3000 - i, trace_text(&t, i % 2 ? "a" : "b", 1), 0);
	assert_int_equal(trace_sort(&t), 0);
	after = mallinfo();
	assert_int_equal(before.uordblks, after.uordblks);
	assert_int_equal(before.hblkhd, after.hblkhd);
	trace_release(&t);
#pragma GCC diagnostic pop
#endif
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trace_owns_its_stacks_until_it_is_released),
		cmocka_unit_test(records_of_one_time_stay_in_the_order_they_were_added),
		cmocka_unit_test(texts_are_kept_once_in_a_row_and_cut_between_characters),
		cmocka_unit_test(a_comment_that_does_not_fit_is_left_out_whole),
		cmocka_unit_test(nothing_of_it_comes_from_malloc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
