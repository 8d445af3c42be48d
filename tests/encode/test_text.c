/*
 * test_text.c - what the encoders of text write: Go's heap text and the table of functions.
 */
#include <config.h>

#include "fixture.h"
#include "frames.h"
#include "lines.h"
#include "order.h"
#include "skip.h"
#include "wait_state.h"

FUNCTION(sem_parse) /* no semaphore's */

/* What stands in front of the MemStats block, which tests/serve/delta.t reads. */
static const char *
records(void)
{
	char *end = strstr((char *)sink.data, "\n# estimated from samples: ");

	assert_non_null(end);
	assert_non_null(strstr(end, "\n# runtime.MemStats\n# Alloc = "));
	*end = '\0';
	return (const char *)sink.data;
}

static void
heap_text_is_what_Go_writes(void **state)
{
	const uintptr_t a[] = { IN(leaf_one), IN(root) }, b[] = { IN(leaf_two), STACK_PSEUDO_TRUNCATED };
	struct profile  p;
	char            want[16384], places[3][4096];

	(void)state;
	place_of(a[0], places[0], sizeof(places[0]));
	place_of(a[1], places[1], sizeof(places[1]));
	place_of(b[0], places[2], sizeof(places[2]));
	init_heap(&p);
	add(&p, a, 2, 4096, (int64_t[4]){ 200, 819200, 20, 81920 });
	add(&p, b, 2, 4096, (int64_t[4]){ 40, 400000, 40, 400000 });
	assert_int_equal(encode(&p, encode_heap_text), 0);
	/* Not unsampled, the largest in use first. */
	snprintf(want, sizeof(want),
		"heap profile: 30: 240960 [120: 609600] @ heap/1048576\n"
		"20: 200000 [20: 200000] @ 0x%lx 0x%lx\n"
		"#\t0x%lx\tleaf_two+0x4\t%s\n"
		"#\t0x%lx\t[truncated]+0x0\t-:0\n"
		"\n"
		"10: 40960 [100: 409600] @ 0x%lx 0x%lx\n"
		"#\t0x%lx\tleaf_one+0x4\t%s\n"
		"#\t0x%lx\troot+0x4\t%s\n"
		"\n",
		(unsigned long)b[0] + 1, (unsigned long)b[1] + 1, (unsigned long)b[0], places[2], (unsigned long)b[1],
		(unsigned long)a[0] + 1, (unsigned long)a[1] + 1, (unsigned long)a[0], places[0], (unsigned long)a[1], places[1]);
	assert_string_equal(records(), want);
	profile_release(&p);
}

/* The form that readers of Go's text accept: nothing after the pc, or all of it. */
static void
frames_of_the_text_are_whole_or_bare(void **state)
{
	struct symbols     *s;
	struct symbol_frame f[1];
	uintptr_t           pcs[] = { 0x1234567, 0, IN(root) };
	struct profile      p;
	char                want[8192], *path;

	(void)state;
	assert_int_equal(symbols_open(LIMIT, &s), 0);
	for (size_t i = 0; i < symbols_mapping_count(s); i++)
		if (!strcmp(symbols_mapping(s, i)->path, "[vdso]"))
			pcs[1] = symbols_mapping(s, i)->start + 1;
	if (!pcs[1]) {
		symbols_close(s);
		SKIP("valgrind takes it away");
	}
	assert_int_equal(symbols_frames(s, pcs[1], f, 1), 1);
	assert_false(f[0].named);
	assert_string_equal(f[0].name, "[vdso]+0x1");
	symbols_close(s);
	init_heap(&p);
	add(&p, pcs, 3, 0, (int64_t[4]){ 2, 200, 2, 200 });
	assert_int_equal(encode(&p, encode_heap_text), 0);
	snprintf(want, sizeof(want), "\n#\t0x1234567\n#\t0x%lx\t[vdso]+0x1\t[vdso]:0\n#\t0x%lx\troot+0x4\t",
		(unsigned long)pcs[1], (unsigned long)pcs[2]);
	path = strstr((char *)sink.data, want);
	assert_non_null(path);
	/* As it is called in the tree, or by its whole path. */
	path += strlen(want);
	assert_in_range(strcspn(path, "\n"), strlen("tests/encode/fixture.h:1"), sizeof(want));
	assert_in_range(strstr(path, "tests/encode/fixture.h:") - path, 0, (long)strcspn(path, "\n"));
	profile_release(&p);
}

static void
equal_totals_are_told_apart_by_a_byte(void **state)
{
	const uintptr_t a[] = { IN(root) };
	struct profile  p;

	(void)state;
	init_heap(&p);
	assert_int_equal(encode(&p, encode_heap_text), 0);
	assert_string_equal(records(), "heap profile: 0: 0 [0: 1] @ heap/1048576\n");
	reset(NULL);
	add(&p, a, 1, 0, (int64_t[4]){ 2, 200, 2, 200 });
	assert_int_equal(encode(&p, encode_heap_text), 0);
	assert_non_null(strstr((char *)sink.data, "heap profile: 1: 100 [1: 101] @ heap/1048576\n1: 100 [1: 100] @ 0x"));
	profile_release(&p);
	init_cpu(&p);
	assert_int_equal(encode(&p, encode_heap_text), -EINVAL);
	profile_release(&p);
}

static void
top_sums_by_function_and_counts_recursion_once(void **state)
{
	const uintptr_t a[] = { IN(leaf_one), IN(middle), IN(middle) + 1, IN(root) };
	const uintptr_t b[] = { IN(leaf_one) + 1, IN(root) };
	const uintptr_t c[] = { IN(middle), IN(root) };
	struct profile  p;

	(void)state;
	init_cpu(&p);
	p.lost = 1;
	add(&p, a, 4, 0, (int64_t[4]){ 120, 1200000000 });
	add(&p, b, 2, 0, (int64_t[4]){ 30, 300000000 });
	add(&p, c, 2, 0, (int64_t[4]){ 49, 490000000 });
	assert_int_equal(encode(&p, encode_viewed_top), 0);
	assert_string_equal((char *)sink.data,
		"profile: cpu, total 2s, duration 5s\n"
		"      flat   flat%         cum    cum%  function\n"
		"     1.50s  75.00%       1.50s  75.00%  leaf_one\n"
		"     490ms  24.50%       1.69s  84.50%  middle\n"
		"      10ms   0.50%        10ms   0.50%  [lost samples]\n"
		"         0   0.00%       1.99s  99.50%  root\n");
	profile_release(&p);
}

static void
top_shows_the_default_type_and_signs_of_a_difference(void **state)
{
	const uintptr_t a[] = { IN(leaf_one) }, b[] = { IN(leaf_two) };
	struct profile  p;

	(void)state;
	init_heap(&p);
	add(&p, a, 1, 0, (int64_t[4]){ 1, 1024, 0, -3145728 });
	add(&p, b, 1, 0, (int64_t[4]){ 1, 3072, 0, 1048576 });
	assert_int_equal(encode(&p, encode_viewed_top), 0);
	assert_string_equal((char *)sink.data,
		"heap: inuse_space, total 4MB\n"
		"      flat   flat%         cum    cum%  function\n"
		"      -3MB -75.00%        -3MB -75.00%  leaf_one\n"
		"       1MB  25.00%         1MB  25.00%  leaf_two\n");
	reset(NULL);
	p.default_type = "alloc_space";
	assert_int_equal(encode(&p, encode_viewed_top), 0);
	assert_string_equal((char *)sink.data,
		"heap: alloc_space, total 4kB\n"
		"      flat   flat%         cum    cum%  function\n"
		"       3kB  75.00%         3kB  75.00%  leaf_two\n"
		"       1kB  25.00%         1kB  25.00%  leaf_one\n");
	profile_release(&p);
	init_cpu(&p);
	reset(NULL);
	assert_int_equal(encode(&p, encode_viewed_top), 0);
	assert_string_equal((char *)sink.data,
		"profile: cpu, total 0, duration 5s\n"
		"      flat   flat%         cum    cum%  function\n");
	profile_release(&p);
}

static void
top_has_what_grew_and_shrank_as_much_in_the_order_of_the_names(void **state)
{
	const uintptr_t pcs[] = { IN(root), IN(leaf_two), IN(middle), IN(leaf_one) };
	struct profile  p;

	(void)state;
	init_heap(&p);
	for (unsigned i = 0; i < 4; i++)
		add(&p, &pcs[i], 1, 0, (int64_t[4]){ 1, 1024, 0, i % 2 ? -1048576 : 1048576 });
	assert_int_equal(encode(&p, encode_viewed_top), 0);
	assert_string_equal((char *)sink.data,
		"heap: inuse_space, total 4MB\n"
		"      flat   flat%         cum    cum%  function\n"
		"      -1MB -25.00%        -1MB -25.00%  leaf_one\n"
		"      -1MB -25.00%        -1MB -25.00%  leaf_two\n"
		"       1MB  25.00%         1MB  25.00%  middle\n"
		"       1MB  25.00%         1MB  25.00%  root\n");
	profile_release(&p);
}

static void
top_says_how_many_functions_it_left_out(void **state)
{
	struct profile p;

	(void)state;
	init_cpu(&p);
	for (uintptr_t i = 0; i < 92; i++)
		add(&p, (uintptr_t[1]){ 0x10000 + i }, 1, 0, (int64_t[4]){ 1, 10000000 });
	assert_int_equal(encode(&p, encode_viewed_top), 0);
	assert_non_null(strstr((char *)sink.data, "0x1004f\n12 of 92 functions left out\n"));
	profile_release(&p);
}

static void
who_ran_before_it_was_signalled_runs_whatever_its_functions_are_called(void **state)
{
	uintptr_t          pcs[] = { IN(sem_parse) };
	struct dump_thread t = { .count = 1, .how = DUMP_SIGNALLED, .syscall = DUMP_NO_SYSCALL, .state = 'R' };
	struct dump        d = { .threads = &t, .count = 1, .pcs = pcs, .pc_count = 1 };
	struct symbols    *s;
	char               buf[32];

	(void)state;
	assert_int_equal(symbols_open(LIMIT, &s), 0);
	assert_string_equal(wait_state(&d, &t, s, buf, sizeof(buf)), "running");
	t.state = 'S';
	assert_string_equal(wait_state(&d, &t, s, buf, sizeof(buf)), "semacquire");
	symbols_close(s);
}

static void
a_dump_without_memory_for_its_creators_has_lines_all_the_same(void **state)
{
	uintptr_t           pcs[] = { IN(leaf_one) };
	struct dump         d = { .pcs = pcs, .pc_count = 1 };
	struct arena_budget none = { 0, 0 };
	struct symbol_frame f[1];
	struct symbols     *s;
	char                place[4096], want[4096];

	(void)state;
	place_of(pcs[0], want, sizeof(want));
	if (!strstr(want, "fixture.h"))
		SKIP("this build has no lines");
	assert_int_equal(symbols_open(LIMIT, &s), 0);
	frames_resolve_dump(&d, s, &none);
	assert_int_equal(symbols_frames(s, pcs[0], f, 1), 1);
	snprintf(place, sizeof(place), "%s:%d", f[0].file ? f[0].file : "", f[0].line);
	assert_string_equal(place, want);
	symbols_close(s);
}

static void
amounts_are_written_as_pprof_writes_them(void **state)
{
	static const struct {
		int64_t     value;
		const char *unit, *want;
	} cases[] = {
		{ 0, "bytes", "0" }, { 1, "bytes", "1B" }, { 1023, "bytes", "1023B" },
		{ 1024, "bytes", "1kB" }, { 1536, "bytes", "1.50kB" }, { 524288000, "bytes", "500MB" },
		{ -2048, "bytes", "-2kB" }, { INT64_MAX, "bytes", "8192PB" }, { INT64_MIN, "bytes", "-8192PB" },
		{ 999, "nanoseconds", "999ns" }, { 1500, "nanoseconds", "1.50us" },
		{ 10000000, "nanoseconds", "10ms" }, { 61000000000, "nanoseconds", "61s" },
		{ 17, "count", "17" }, { -17, "count", "-17" },
	};
	char buf[LINES_NUMBER_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		lines_value(buf, cases[i].value, cases[i].unit);
		assert_string_equal(buf, cases[i].want);
	}
	lines_percent(buf, INT64_MIN, (uint64_t)1 << 63);
	assert_string_equal(buf, "-100.00%");
	lines_percent(buf, 1, 0);
	assert_string_equal(buf, "0.00%");
}

static bool
smaller(const void *arg, uint32_t a, uint32_t b)
{
	(void)arg;
	return a < b;
}

static void
sorting_sorts(void **state)
{
	uint32_t items[1000], seed = 1;

	(void)state;
	for (size_t n = 0; n < 1000; n = n * 3 / 2 + 1) {
		for (size_t i = 0; i < n; i++)
			items[i] = (seed = seed * 1103515245 + 12345) >> 20;
		order_sort(items, n, smaller, NULL);
		for (size_t i = 1; i < n; i++)
			assert_true(items[i - 1] <= items[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(heap_text_is_what_Go_writes, reset),
		cmocka_unit_test_setup(frames_of_the_text_are_whole_or_bare, reset),
		cmocka_unit_test_setup(equal_totals_are_told_apart_by_a_byte, reset),
		cmocka_unit_test_setup(top_sums_by_function_and_counts_recursion_once, reset),
		cmocka_unit_test_setup(top_shows_the_default_type_and_signs_of_a_difference, reset),
		cmocka_unit_test_setup(top_has_what_grew_and_shrank_as_much_in_the_order_of_the_names, reset),
		cmocka_unit_test_setup(top_says_how_many_functions_it_left_out, reset),
		cmocka_unit_test(who_ran_before_it_was_signalled_runs_whatever_its_functions_are_called),
		cmocka_unit_test(a_dump_without_memory_for_its_creators_has_lines_all_the_same),
		cmocka_unit_test(amounts_are_written_as_pprof_writes_them),
		cmocka_unit_test(sorting_sorts),
	};
	int failed;

	/* What a distribution's debug files cost is not the encoders' matter. */
	debug_file_root = "/nonexistent";
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(sink.data);
	return failed;
}
