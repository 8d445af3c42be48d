/*
 * test_text.c - what a person wrote, put into messages and JSON without harm.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "text.h"

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
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
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
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		text_add_json(&t, cases[i].in);
		assert_string_equal(t.data, cases[i].out);
		text_release(&t);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_quoted_is_visible_and_cut),
		cmocka_unit_test(json_strings_are_json_whatever_is_in_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
