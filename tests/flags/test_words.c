/*
 * test_words.c - words of a row's member, and lists of lines.
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
		cmocka_unit_test(lines_keep_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
