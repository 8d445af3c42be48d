/*
 * test_text.c - what a person wrote, put into messages and JSON without harm,
 * and how far one word is from another.
 */
#include <config.h>

#include "fixture.h"

#include "text.h"
#include "words.h"

static void
what_is_quoted_is_visible_and_cut(void **state)
{
	static const struct { const char *in, *out; } cases[] = {
		{ "", "''" }, { "abc", "'abc'" }, { "a\nb\t\x1b[0m\x7f", "'a\\x0ab\\x09\\x1b[0m\\x7f'" },
		{ "gr\xc3\xbc\xc3\x9f", "'gr\xc3\xbc\xc3\x9f'" }, { "\xc2\x9b", "'\\xc2\\x9b'" }, { "\xff\xc3", "'\\xff\\xc3'" },
		{ "\xe2\x82\xac", "'\xe2\x82\xac'" }, { "\xed\xa0\x80", "'\\xed\\xa0\\x80'" }, { "\xc0\xaf", "'\\xc0\\xaf'" },
		{ "\xf0\x9f\x98\x80", "'\xf0\x9f\x98\x80'" }, { "\xf4\x90\x80\x80", "'\\xf4\\x90\\x80\\x80'" },
	};
	struct text t = TEXT_INIT;
	char        word[TEXT_QUOTED_MAX + 10];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		text_add_quoted(&t, cases[i].in);
		assert_string_equal(t.data, cases[i].out);
		text_release(&t);
	}
	memset(word, 'a', sizeof(word));
	word[TEXT_QUOTED_MAX] = '\0';
	text_add_quoted(&t, word);
	assert_int_equal(t.size, TEXT_QUOTED_MAX + 2);
	text_release(&t);
	word[TEXT_QUOTED_MAX] = 'a';
	word[TEXT_QUOTED_MAX + 1] = '\0';
	text_add_quoted(&t, word);
	assert_int_equal(t.size, TEXT_QUOTED_MAX + 5);
	assert_string_equal(t.data + t.size - 5, "a...'");
	text_release(&t);
}

static void
json_strings_are_json_whatever_is_in_them(void **state)
{
	static const struct { const char *in, *out; } cases[] = {
		{ "", "\"\"" }, { "a\"b\\c/", "\"a\\\"b\\\\c/\"" }, { "\n\t\r\x01\x7f", "\"\\n\\t\\u000d\\u0001\\u007f\"" },
		{ "\xe2\x82\xac\xff.", "\"\xe2\x82\xac\\ufffd.\"" },
	};
	struct text t = TEXT_INIT;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		text_add_json(&t, cases[i].in);
		assert_string_equal(t.data, cases[i].out);
		text_release(&t);
	}
}

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
		cmocka_unit_test(what_is_quoted_is_visible_and_cut),
		cmocka_unit_test(json_strings_are_json_whatever_is_in_them),
		cmocka_unit_test(words_are_parted_by_blanks),
		cmocka_unit_test(distance_counts_slips),
		cmocka_unit_test(lines_keep_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
