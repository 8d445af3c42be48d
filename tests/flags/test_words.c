/*
 * test_words.c - words of a row's member, how far one is from another, and lists of lines.
 */
#include <config.h>

#include "fixture.h"

#include "words.h"

static void
words_are_parted_by_blanks(void **state)
{
	const char *cursor = "  one two\n\tthree ", *word;
	size_t      size;
	const char *nothing = NULL;

	(void)state;
	assert_true(words_next(&cursor, &word, &size));
	assert_memory_equal(word, "one", size);
	assert_true(words_next(&cursor, &word, &size));
	assert_memory_equal(word, "two", size);
	assert_true(words_next(&cursor, &word, &size));
	assert_int_equal(size, 5);
	assert_false(words_next(&cursor, &word, &size));
	assert_false(words_next(&nothing, &word, &size));
}

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
		assert_int_equal(words_distance(cases[i].a, cases[i].b), cases[i].steps);
		assert_int_equal(words_distance(cases[i].b, cases[i].a), cases[i].steps);
	}
	memset(word, 'a', sizeof(word));
	word[199] = '\0';
	assert_int_equal(words_distance(word, "a"), 64);
}

static void
lines_keep_their_order(void **state)
{
	struct lines l = { NULL, 0, false };

	(void)state;
	for (int i = 0; i < 100; i++)
		lines_add(&l, "line %d", i);
	lines_add(&l, "%s", "");
	assert_int_equal(l.count, 101);
	assert_string_equal(l.items[99], "line 99");
	assert_string_equal(l.items[100], "");
	lines_release(&l);
	assert_int_equal(l.count, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_parted_by_blanks),
		cmocka_unit_test(distance_counts_slips),
		cmocka_unit_test(lines_keep_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
