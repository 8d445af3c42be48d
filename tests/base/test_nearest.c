/*
 * test_nearest.c - how far one word is from another, and which of several was meant.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nearest.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void
distance_counts_slips(void **state)
{
	static const struct { const char *a, *b; unsigned steps; } cases[] = {
		{ "", "", 0 }, { "a", "", 1 }, { "", "abc", 3 }, { "kitten", "sitting", 3 }, { "pprof", "pporf", 1 },
		{ "abcd", "abdc", 1 }, { "abcd", "badc", 2 }, { "v", "w", 1 }, { "enable-pprof", "enable-prof", 1 }, { "ca", "abc", 3 },
	};
	char word[200];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(nearest_distance(cases[i].a, cases[i].b), cases[i].steps);
		assert_int_equal(nearest_distance(cases[i].b, cases[i].a), cases[i].steps);
	}
	memset(word, 'a', sizeof(word));
	word[199] = '\0';
	assert_int_equal(nearest_distance(word, "a"), 64);
}

static const char *
nearest(const char *text, struct nearest *n)
{
	static const char *const words[] = { "profile", "heap", "goroutine", "trace", "goroutineleak", "n" };

	nearest_begin(n, text);
	for (size_t i = 0; i < COUNT(words); i++)
		nearest_try(n, words[i], strlen(words[i]));
	return n->word;
}

static void
the_nearest_of_several_is_told(void **state)
{
	struct nearest n;

	(void)state;
	assert_string_equal(nearest("profle", &n), "profile");
	assert_string_equal(nearest("Heap", &n), "heap");
	assert_string_equal(nearest("goroutines", &n), "goroutine");
	assert_string_equal(nearest("prof", &n), "profile");
	assert_string_equal(nearest("gorou", &n), "goroutine");
}

static void
what_is_far_from_all_is_near_none(void **state)
{
	static const char *const words[] = { "nope", "x", "", "zz", "memory-map", "<script>" };
	char           much[300];
	struct nearest n;

	(void)state;
	for (size_t i = 0; i < COUNT(words); i++)
		assert_string_equal(nearest(words[i], &n), "");
	memset(much, 'a', sizeof(much));
	much[299] = '\0';
	assert_string_equal(nearest(much, &n), "");
	nearest_begin(&n, "aaaa");
	nearest_try(&n, much, 299);
	assert_string_equal(n.word, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distance_counts_slips),
		cmocka_unit_test(the_nearest_of_several_is_told),
		cmocka_unit_test(what_is_far_from_all_is_near_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
