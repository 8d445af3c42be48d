/*
 * test_params.c - the query as Go reads it: the first readable pair wins, integers
 * are decimal, and the numbers of "symbol" choose their base by their prefix.
 */
#include <config.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "query.h"
#include "routes.h"

static void
the_first_readable_pair_of_a_name_wins(void **state)
{
	static const struct {
		const char *query, *want; /* want NULL: not there */
	} cases[] = {
		{ "debug=1", "1" }, { "debug=1&debug=0", "1" }, { "debug=0&debug=1", "0" }, { "a=b&debug=2", "2" },
		{ "debug", "" }, { "debug=", "" }, { "d%65bug=7", "7" }, { "debug=%31", "1" }, { "debug=+1", " 1" },
		{ "debug=%2B1", "+1" }, { "debug=%zz&debug=1", "1" }, { "debug=%4&debug=1", "1" },
		{ "a;b&debug=1", "1" }, { "debug=1;x&debug=3", "3" }, { "&&debug=1&&", "1" }, { "debug=a=b", "a=b" },
		{ "", NULL }, { NULL, NULL }, { "Debug=1", NULL }, { "xdebug=1", NULL }, { "debugx=1", NULL },
		{ "debug=1;", NULL },
	};
	char buf[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool got = query_get(cases[i].query, "debug", buf, sizeof(buf));

		assert_int_equal(got, cases[i].want != NULL);
		assert_string_equal(buf, cases[i].want ? cases[i].want : "");
	}
}

static void
a_value_too_long_for_the_buffer_is_cut(void **state)
{
	char buf[4];

	(void)state;
	assert_true(query_get("a=123456", "a", buf, sizeof(buf)));
	assert_string_equal(buf, "123");
}

static void
integers_are_decimal_and_saturate(void **state)
{
	static const struct {
		const char *text;
		int         r;
		int64_t     want;
	} cases[] = {
		{ "0", 0, 0 }, { "1", 0, 1 }, { "+1", 0, 1 }, { "-1", 0, -1 }, { "007", 0, 7 },
		{ "9223372036854775807", 0, INT64_MAX }, { "9223372036854775808", -ERANGE, INT64_MAX },
		{ "-9223372036854775808", 0, INT64_MIN }, { "-9223372036854775809", -ERANGE, INT64_MIN },
		{ "99999999999999999999999999", -ERANGE, INT64_MAX },
		{ "", -EINVAL, 0 }, { "+", -EINVAL, 0 }, { "-", -EINVAL, 0 }, { "abc", -EINVAL, 0 },
		{ "1.5", -EINVAL, 0 }, { "0x1", -EINVAL, 0 }, { " 1", -EINVAL, 0 }, { "1 ", -EINVAL, 0 },
		{ "1_0", -EINVAL, 0 }, { "99999999999999999999x", -EINVAL, 0 },
	};
	int64_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(query_int(cases[i].text, &n), cases[i].r);
		assert_true(n == cases[i].want);
	}
}

static void
an_address_chooses_its_base_by_its_prefix(void **state)
{
	static const struct {
		const char *word;
		uint64_t    want; /* 0: left out */
	} cases[] = {
		{ "0x1f", 31 }, { "0X1F", 31 }, { "31", 31 }, { "037", 31 }, { "0o37", 31 }, { "0b11111", 31 },
		{ "0xffffffffffffffff", UINT64_MAX }, { "0x10000000000000000", 0 }, { "1f", 0 }, { "0x", 0 },
		{ "", 0 }, { "0", 0 }, { "08", 0 }, { "0b2", 0 }, { "-1", 0 }, { "+1", 0 }, { " 1", 0 }, { "1\n", 0 },
		{ "0x1g", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_true(symbol_number(cases[i].word, strlen(cases[i].word)) == cases[i].want);
}

static void
numbers_are_read_as_go_reads_them(void **state)
{
	static const struct {
		const char *text;
		int         r;
		double      want;
	} cases[] = {
		{ "1.5", 0, 1.5 }, { "+1", 0, 1 }, { "-1", 0, -1 }, { "1e3", 0, 1000 }, { ".5", 0, 0.5 }, { "5.", 0, 5 },
		{ "0x1p3", 0, 8 }, { "0x1.8p0", 0, 1.5 }, { "1e400", 0, 1e300 }, { "-1e400", 0, -1e300 }, { "1e-400", 0, 0 },
		{ "", -EINVAL, 0 }, { " 1", -EINVAL, 0 }, { "1 ", -EINVAL, 0 }, { "1,5", -EINVAL, 0 }, { "inf", -EINVAL, 0 },
		{ "nan", -EINVAL, 0 }, { "infinity", -EINVAL, 0 }, { "1e", -EINVAL, 0 }, { "0x", -EINVAL, 0 }, { "0x10", 0, 16 },
		{ "+-1", -EINVAL, 0 }, { ".", -EINVAL, 0 }, { "e3", -EINVAL, 0 }, { "1x", -EINVAL, 0 },
	};
	double x;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int r = query_float(cases[i].text, &x);

		if (r != cases[i].r || (!r && x != cases[i].want))
			fail_msg("%s: %d, %g", cases[i].text, r, x);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_readable_pair_of_a_name_wins),
		cmocka_unit_test(a_value_too_long_for_the_buffer_is_cut),
		cmocka_unit_test(integers_are_decimal_and_saturate),
		cmocka_unit_test(numbers_are_read_as_go_reads_them),
		cmocka_unit_test(an_address_chooses_its_base_by_its_prefix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
