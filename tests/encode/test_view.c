/*
 * test_view.c - what of a profile is shown: patterns, values by name, stacks in focus, rows.
 */
#include <config.h>

#include "fixture.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool
finds(const char *pattern, const char *text)
{
	char why[128];

	assert_int_equal(pattern_check(pattern, why, sizeof(why)), 0);
	return pattern_finds(pattern, text);
}

static void
patterns_find_what_go_finds_by_them(void **state)
{
	static const struct { const char *pattern, *text; bool found; } cases[] = {
		{ "", "", true }, { "", "main", true }, { "ain", "main", true },
		{ "main", "mai", false }, { "MAIN", "main", false },
		{ "^main", "main", true }, { "^main", "domain", false },
		{ "main$", "domain", true }, { "main$", "mainly", false },
		{ "^main$", "main", true }, { "^main$", "main2", false }, { "^$", "", true },
		{ "^$", "a", false }, { "$", "a", true },
		{ "^", "a", true }, { "a|b", "xb", true }, { "^a|b$", "cb", true },
		{ "^a|b$", "ca", false }, { "x|", "abc", true },
		{ "|x", "abc", true }, { "x|^y|z", "aya", false },
		{ "x|^y|z", "ayz", true }, { "m.in", "main", true },
		{ "m.in", "min", false }, { "^...$", "abc", true },
		{ "^...$", "ab", false }, { "^.$", "\xc3\xa4", true },
		{ "a.c", "a\xe2\x82\xac" "c", true }, { "a.*c", "abbc", true },
		{ "a.*c", "ac", true }, { "a.*c", "cba", false },
		{ "^.*$", "", true }, { ".*", "", true },
		{ "^a.*b.*c$", "axbxcbc", true }, { "^a.*b.*c$", "axcxb", false },
		{ "ab.*ab", "ab", false }, { "ab.*ab", "aab", false },
		{ "^ab.*b$", "ab", false }, { "^ab.*b$", "abb", true },
		{ "..*$", "", false }, { "a..*c", "abc", true },
		{ "a..*c", "ac", false }, { "operator\\(\\)", "f::operator()()", true },
		{ "std::vector<int>::push_back", "std::vector<int>::push_back(int&&)", true }, { "\\.", "ab", false },
		{ "libc\\.so", "/lib/libc.so.6", true }, { "a\\|b", "a|b", true },
		{ "a\\|b", "a", false }, { "a\\$", "a", false },
		{ "a\\$", "a$b", true }, { "\\^a", "^a", true }, { "\\\\$", "a\\", true }, { "aab", "aaab", true },
		{ "]}", "]}", true }, { "a\\*", "a*", true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (finds(cases[i].pattern, cases[i].text) != cases[i].found)
			fail_msg("'%s' in '%s'", cases[i].pattern, cases[i].text);
}

static void
what_has_another_meaning_in_go_is_refused(void **state)
{
	static const char *const bad[] = { "a(b", "a)", "[ab]", "a+", "a?", "a*", "*", "a{2}",
		"\\.*x", ".**", "x.*?", "a^b", "^^", "a$b",
		"$$", "\\d", "\\bmain", "a\\", "\\ ", "(?i)a" };
	char why[160], much[PATTERN_BYTES + 1];

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (pattern_check(bad[i], why, sizeof(why)) != -EINVAL)
			fail_msg("'%s'", bad[i]);
	pattern_check("a(b", why, sizeof(why));
	assert_string_equal(why, "has a '(' there; understood are . .* ^ $ | and \\( for the character");
	memset(much, 'a', sizeof(much));
	much[PATTERN_BYTES] = '\0';
	assert_int_equal(pattern_check(much, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "is longer than 255 bytes");
	much[PATTERN_BYTES - 1] = '\0';
	assert_int_equal(pattern_check(much, why, sizeof(why)), 0);
}

static void
values_are_chosen_by_name_or_number(void **state)
{
	static const struct profile_type heap[] = { { "alloc_objects", "count" }, { "alloc_space", "bytes" },
		{ "inuse_objects", "count" }, { "inuse_space", "bytes" } },
		waits[] = { { "contentions", "count" }, { "delay", "nanoseconds" } };
	static const char *const bad[] = { "4", "-1", "+1", "1x", "Alloc_space", "space", "9999999999999", " 1" };
	char     why[160];
	unsigned type = 9;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(view_type_find(heap, 4, heap[i].type, &type, why, sizeof(why)), 0);
		assert_int_equal(type, i);
		assert_int_equal(view_type_find(heap, 4, (char[2]){ (char)('0' + i) }, &type, why, sizeof(why)), 0);
		assert_int_equal(type, i);
	}
	for (size_t i = 0; i < COUNT(bad); i++)
		if (view_type_find(heap, 4, bad[i], &type, why, sizeof(why)) != -EINVAL)
			fail_msg("'%s'", bad[i]);
	assert_int_equal(type, 3);
	assert_string_equal(why,
		"must be alloc_objects, alloc_space, inuse_objects, inuse_space or a number from 0 to 3");
	assert_int_equal(view_type_find(waits, 2, "total_delay", &type, why, sizeof(why)), 0);
	assert_int_equal(type, 1);
	assert_int_equal(view_type_find(waits, 2, "inuse_contentions", &type, why, sizeof(why)), 0);
	assert_int_equal(type, 0);
	assert_int_equal(view_type_find(waits, 1, "delay", &type, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "must be contentions or 0");
}

static void
shown_as(const struct view *v, bool folded, const char *want)
{
	const uintptr_t a[] = { IN(leaf_one), IN(middle), IN(root) },
			b[] = { IN(leaf_two), IN(middle), IN(root) }, c[] = { IN(root) };
	struct profile  p;

	reset(NULL);
	init_cpu(&p);
	p.lost = 10;
	add(&p, a, 3, 0, (int64_t[4]){ 50, 500000000 });
	add(&p, b, 3, 0, (int64_t[4]){ 30, 300000000 });
	add(&p, c, 1, 0, (int64_t[4]){ 10, 100000000 });
	view = *v;
	assert_int_equal(encode(&p, folded ? encode_viewed_folded : encode_viewed_top), 0);
	view = (struct view){ .rows = 0 };
	assert_string_equal((char *)sink.data, want);
	profile_release(&p);
}

#define HEAD  "      flat   flat%         cum    cum%  function\n"
#define TOP(s) "profile: cpu, total 1s" s ", duration 5s\n" HEAD

static void
stacks_in_focus_stay_and_ignored_ones_go(void **state)
{
	(void)state;
	shown_as(&(struct view){ .focus = "^leaf_one$|lost" }, false, TOP(", shown 600ms")
		"     500ms  50.00%       500ms  50.00%  leaf_one\n"
		"     100ms  10.00%       100ms  10.00%  [lost samples]\n"
		"         0   0.00%       500ms  50.00%  middle\n"
		"         0   0.00%       500ms  50.00%  root\n");
	shown_as(&(struct view){ .focus = "middle", .ignore = "two" }, false, TOP(", shown 500ms")
		"     500ms  50.00%       500ms  50.00%  leaf_one\n"
		"         0   0.00%       500ms  50.00%  middle\n"
		"         0   0.00%       500ms  50.00%  root\n");
	shown_as(&(struct view){ .focus = "nothing" }, false, TOP(", shown 0"));
	shown_as(&(struct view){ .ignore = "middle" }, true, "root 10\n[lost samples] 10\n");
	shown_as(&(struct view){ .focus = "^leaf_.*o$" }, true, "root;middle;leaf_two 30\n");
	/* The object they are in. */
	shown_as(&(struct view){ .focus = "/test_view$", .ignore = "leaf" }, true, "root 10\n");
}

static void
rows_are_sorted_and_limited_as_asked(void **state)
{
	(void)state;
	shown_as(&(struct view){ .cum = true, .rows = 3 }, false, TOP("")
		"     100ms  10.00%       900ms  90.00%  root\n"
		"         0   0.00%       800ms  80.00%  middle\n"
		"     500ms  50.00%       500ms  50.00%  leaf_one\n"
		"2 of 5 functions left out\n");
	shown_as(&(struct view){ .typed = true, .type = 0, .rows = 1 }, false,
		"profile: samples, total 100, duration 5s\n" HEAD
		"        50  50.00%          50  50.00%  leaf_one\n4 of 5 functions left out\n");
	shown_as(&(struct view){ .typed = true, .type = 1, .rows = 2 }, true,
		"root;middle;leaf_one 500000000\nroot;middle;leaf_two 300000000\n");
	shown_as(&(struct view){ .rows = 4 }, true,
		"root;middle;leaf_one 50\nroot;middle;leaf_two 30\nroot 10\n[lost samples] 10\n");
}

/* More calls than a picture's memory holds; a stack whose calls are there finds them after that, too. */
static void
calls_that_find_no_room_in_a_picture_are_counted_in_their_callers(void **state)
{
	enum { CALLS = 300000 };
	const uintptr_t large[] = { IN(leaf_one), IN(root) };
	struct profile  p;

	(void)state;
	init_cpu(&p);
	add(&p, large, 2, 0, (int64_t[4]){ CALLS, 0 });
	for (uintptr_t i = 0; i < CALLS; i++)
		add(&p, (uintptr_t[]){ 4096 + 16 * i, IN(root) }, 2, 0, (int64_t[4]){ 1, 0 });
	add(&p, large, 2, 0, (int64_t[4]){ CALLS, 0 });
	view = (struct view){ .typed = true, .type = 0 };
	assert_int_equal(encode(&p, encode_viewed_svg), 0);
	view = (struct view){ .rows = 0 };
	assert_non_null(strstr((char *)sink.data, ", calls that there was no room for are counted in their callers<"));
	assert_non_null(strstr((char *)sink.data, "<title>all: 900000 (100.00%)<"));
	assert_non_null(strstr((char *)sink.data, "<title>root: 900000 (100.00%), itself "));
	assert_non_null(strstr((char *)sink.data, "<title>leaf_one: 600000 (66.67%), itself 600000 (66.67%)<"));
	profile_release(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_find_what_go_finds_by_them),
		cmocka_unit_test(what_has_another_meaning_in_go_is_refused),
		cmocka_unit_test(values_are_chosen_by_name_or_number),
		cmocka_unit_test_setup(stacks_in_focus_stay_and_ignored_ones_go, reset),
		cmocka_unit_test_setup(rows_are_sorted_and_limited_as_asked, reset),
		cmocka_unit_test_setup(calls_that_find_no_room_in_a_picture_are_counted_in_their_callers, reset),
	};

	debug_file_root = "/nonexistent";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
