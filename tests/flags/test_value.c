/*
 * test_value.c - what a value means, for every type, and what is refused.
 *
 * Nothing is guessed: whatever could be read in two ways is an error that says what
 * to write, and on an error nothing is stored.  Everything that is written down is
 * read back as the same value.
 */
#include <config.h>

#include "fixture.h"

#include <locale.h>
#include <math.h>
#include <time.h>

#include "value.h"

static const struct component_flag row_bool = { .name = "x", .type = COMPONENT_FLAG_TYPE_BOOL };
static const struct component_flag row_int = { .name = "x", .type = COMPONENT_FLAG_TYPE_INT };
static const struct component_flag row_number = { .name = "x", .type = COMPONENT_FLAG_TYPE_NUMBER };
static const struct component_flag row_size = { .name = "x", .type = COMPONENT_FLAG_TYPE_SIZE };
static const struct component_flag row_duration = { .name = "x", .type = COMPONENT_FLAG_TYPE_DURATION };
static const struct component_flag row_list = { .name = "x", .type = COMPONENT_FLAG_TYPE_LIST };
static const struct component_flag row_address = { .name = "x", .type = COMPONENT_FLAG_TYPE_ADDRESS };
static const struct component_flag row_enum = { .name = "x", .type = COMPONENT_FLAG_TYPE_ENUM, .choices = fixture_formats };

/* The result; why, which the caller looks at, is kept until the next call. */
static struct text why;

static int
parse(const struct component_flag *row, const char *text, struct flag_value *v)
{
	int r;

	text_release(&why);
	r = flag_value_parse(row, text, v, &why);
	/* An error always says something, success nothing. */
	assert_int_equal(r < 0, why.size > 0);
	return r;
}

static void
refuses(const struct component_flag *row, const char *text, int error)
{
	struct flag_value v = { .size = 0xdeadbeefcafe, .memory = &v };
	int               r = parse(row, text, &v);

	if (r != error)
		fail_msg("'%s' gave %d instead of %d: %s", text, r, error, text_string(&why));
	assert_true(v.size == 0xdeadbeefcafe && v.memory == &v);
}

static void
a_bool_is_one_of_ten_words_in_any_case(void **state)
{
	static const char *const no[] = { "0", "f", "F", "false", "False", "FALSE", "no", "NO", "off", "Off" };
	static const char *const yes[] = { "1", "t", "T", "true", "True", "TRUE", "yes", "YES", "on", "oN" };
	static const char *const neither[] = { "2", "-1", "00", "tru", "y", "n", "enabled", " true", "true ", "truetrue", "nil" };
	struct flag_value v;

	(void)state;
	for (size_t i = 0; i < COUNT(yes); i++) {
		assert_int_equal(parse(&row_bool, no[i], &v), 0);
		assert_false(v.boolean);
		assert_int_equal(parse(&row_bool, yes[i], &v), 0);
		assert_true(v.boolean);
	}
	for (size_t i = 0; i < COUNT(neither); i++)
		refuses(&row_bool, neither[i], -EINVAL);
}

static void
an_int_is_exact_up_to_its_last_bit(void **state)
{
	static const struct { const char *text; int64_t want; } cases[] = {
		{ "0", 0 }, { "-0", 0 }, { "7", 7 }, { "-7", -7 }, { "65535", 65535 },
		{ "9223372036854775807", INT64_MAX }, { "-9223372036854775808", INT64_MIN },
	};
	struct flag_value v;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(parse(&row_int, cases[i].text, &v), 0);
		assert_true(v.integer == cases[i].want);
	}
	refuses(&row_int, "9223372036854775808", -ERANGE);
	refuses(&row_int, "-9223372036854775809", -ERANGE);
	refuses(&row_int, "18446744073709551616", -ERANGE);
	refuses(&row_int, "99999999999999999999999999", -ERANGE);
}

static void
an_int_is_digits_and_nothing_else(void **state)
{
	static const char *const cases[] = {
		"+1", " 1", "1 ", "1x", "0x10", "010", "1e3", "1.0", "1_000", "1,000", "-", "--1", "- 1", "one", "\t1", "1\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		refuses(&row_int, cases[i], -EINVAL);
}

static void
a_range_names_its_ends_in_the_units_of_the_row(void **state)
{
	static const struct { enum component_flag_type type; int64_t min, max; const char *bad, *good, *sentence; } cases[] = {
		{ COMPONENT_FLAG_TYPE_INT, 1, 65535, "0", "1", "from 1 to 65535" },
		{ COMPONENT_FLAG_TYPE_INT, 1, 65535, "65536", "65535", "from 1 to 65535" },
		{ COMPONENT_FLAG_TYPE_INT, -1, 3, "-2", "-1", "from -1 to 3" },
		{ COMPONENT_FLAG_TYPE_INT, 1, INT64_MAX, "0", "9", "of at least 1" },
		{ COMPONENT_FLAG_TYPE_SIZE, 4096, 1 << 20, "4095", "4KiB", "from 4KiB to 1MiB" },
		{ COMPONENT_FLAG_TYPE_SIZE, 4096, 1 << 20, "1048577", "1MiB", "from 4KiB to 1MiB" },
		{ COMPONENT_FLAG_TYPE_SIZE, 0, 10, "17179869184GiB", "10", "" },
		{ COMPONENT_FLAG_TYPE_DURATION, SECONDS, 60 * SECONDS, "999ms", "1s", "from 1s to 1m" },
		{ COMPONENT_FLAG_TYPE_NUMBER, 0, 1, "1.0000001", "1", "from 0 to 1" },
		{ COMPONENT_FLAG_TYPE_NUMBER, 0, 1, "-0.1", "0", "from 0 to 1" },
	};
	struct flag_value v;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct component_flag row = { .name = "x", .type = cases[i].type, .min = cases[i].min, .max = cases[i].max };

		refuses(&row, cases[i].bad, -ERANGE);
		assert_non_null(strstr(text_string(&why), cases[i].sentence));
		assert_int_equal(parse(&row, cases[i].good, &v), 0);
	}
}

static void
a_size_is_bytes_or_a_number_and_a_unit(void **state)
{
	static const struct { const char *text; uint64_t want; } cases[] = {
		{ "0", 0 }, { "1", 1 }, { "512KiB", 512 << 10 }, { "512Ki", 512 << 10 }, { "1MiB", 1 << 20 },
		{ "3GiB", 3ull << 30 }, { "2TiB", 2ull << 40 }, { "1kB", 1000 }, { "5MB", 5000000 },
		{ "1GB", 1000000000 }, { "7B", 7 }, { "1.5KiB", 1536 }, { "0.5MiB", 1 << 19 }, { "0.001kB", 1 },
		{ "1.50KiB", 1536 }, { "16777215TiB", 16777215ull << 40 }, { "15EiB", 15ull << 60 },
		{ "18446744073709551615", UINT64_MAX }, { "15.9375EiB", 255ull << 56 }, { "18EB", 18000000000000000000ull },
	};
	struct flag_value v;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (parse(&row_size, cases[i].text, &v) != 0 || v.size != cases[i].want)
			fail_msg("'%s' is %llu: %s", cases[i].text, (unsigned long long)v.size, text_string(&why));
	}
}

static void
a_size_that_would_be_guessed_or_rounded_is_refused(void **state)
{
	static const char *const guesses[] = {
		"0.1234567890123456789KiB",
		"K", "1K", "1M", "1G", "1KB", "1kb", "1kib", "1KIB", "1 KiB", " 1", "1 ", "-1", "+1", "1.5", "1.KiB",
		".5KiB", "1.5B", "0x10", "010", "1e3", "1KiBx", "1KiB2MiB", "0.0001KiB", "1,5KiB", "KiB", "one",
	};
	static const char *const large[] = {
		"16EiB", "18446744073709551616", "18446744073709551615KiB", "19EB", "99999999999999999999999TiB",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(guesses); i++)
		refuses(&row_size, guesses[i], -EINVAL);
	for (size_t i = 0; i < COUNT(large); i++)
		refuses(&row_size, large[i], -ERANGE);
}

static void
a_duration_is_numbers_and_units_in_falling_order(void **state)
{
	static const struct { const char *text; int64_t want; } cases[] = {
		{ "0", 0 }, { "0s", 0 }, { "30s", 30 * SECONDS }, { "1h30m", 5400 * SECONDS }, { "500ms", SECONDS / 2 },
		{ "1h2m3s4ms5us6ns", 3723004005006 }, { "1.5h", 5400 * SECONDS }, { "1.5s", 3 * SECONDS / 2 },
		{ "0.000000001s", 1 }, { "250us", 250000 }, { "250\xc2\xb5s", 250000 }, { "250\xce\xbcs", 250000 },
		{ "-1s", -SECONDS }, { "-1h30m", -5400 * SECONDS }, { "90m", 5400 * SECONDS }, { "7200s", 7200 * SECONDS },
		{ "9223372036854775807ns", INT64_MAX }, { "-9223372036854775807ns", -INT64_MAX }, { "2562047h", SECONDS * 2562047 * 3600 },
		{ "0.000000000001h", 0 },
	};
	struct flag_value v;

	(void)state;
	/* The last is 3.6 ns: not a whole number of them. */
	for (size_t i = 0; i + 1 < COUNT(cases); i++)
		if (parse(&row_duration, cases[i].text, &v) != 0 || v.integer != cases[i].want)
			fail_msg("'%s' is %lld: %s", cases[i].text, (long long)v.integer, text_string(&why));
	refuses(&row_duration, cases[COUNT(cases) - 1].text, -EINVAL);
}

static void
a_duration_that_would_be_guessed_is_refused(void **state)
{
	static const char *const cases[] = {
		"30", "-30", "00", "s", "-", "1", "1S", "1 s", " 1s", "1s ", "+1s", "1sec", "1d", "1w", "30m1h", "1s1s", "1s2",
		"1h-30m", "--1s", "1.s", ".5s", "0x1s", "01s", "1e3s", "1h 30m", "1,5s", "infinity", "1.0000000001s", "1.1234567890123456789s",
		"999999999999",
	};
	static const char *const large[] = {
		"9223372036854775808ns", "18446744073709551616s", "2562048h", "9223372036s1000000000000us",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		refuses(&row_duration, cases[i], -EINVAL);
	for (size_t i = 0; i < COUNT(large); i++)
		refuses(&row_duration, large[i], -ERANGE);
	refuses(&row_duration, "30", -EINVAL);
	assert_string_equal(text_string(&why), "has no unit; write '30s', or '30ms' for milliseconds");
}

static void
a_number_is_decimal_and_finite(void **state)
{
	static const struct { const char *text; double want; } cases[] = {
		{ "0", 0 }, { "10", 10 }, { "0.5", 0.5 }, { "-2.25", -2.25 }, { "1e3", 1000 }, { "1.5E-3", 0.0015 },
		{ "1e+2", 100 }, { "0e0", 0 }, { "0.0", 0 }, { "1.7976931348623157e308", 1.7976931348623157e308 },
	};
	static const char *const bad[] = {
		"", "x", "nan", "inf", "infinity", "-inf", "0x1p3", "1.", ".5", "1e", "1e+", "+1", " 1", "1 ", "1,5", "01", "1.2.3", "--1",
	};
	struct flag_value v;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(parse(&row_number, cases[i].text, &v), 0);
		assert_true(v.number == cases[i].want);
	}
	for (size_t i = 0; i < COUNT(bad); i++)
		refuses(&row_number, bad[i], -EINVAL);
	refuses(&row_number, "1e309", -ERANGE);
	refuses(&row_number, "-1e999", -ERANGE);
	refuses(&row_number, "1e-999", -ERANGE);
}

static void
a_number_does_not_depend_on_the_locale(void **state)
{
	static const char *const locales[] = { "de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "sv_SE.UTF-8" };
	struct flag_value v;
	struct text       t = TEXT_INIT;
	bool              found = false;

	(void)state;
	for (size_t i = 0; i < COUNT(locales) && !found; i++)
		found = setlocale(LC_NUMERIC, locales[i]) != NULL;
	assert_int_equal(parse(&row_number, "1234.5", &v), 0);
	assert_true(v.number == 1234.5);
	refuses(&row_number, "1234,5", -EINVAL);
	v.number = -0.25;
	flag_value_format(&row_number, &v, &t);
	setlocale(LC_NUMERIC, "C");
	assert_string_equal(t.data, "-0.25");
	text_release(&t);
	if (!found)
		print_message("# no locale with a decimal comma here: only C was tried\n");
}

static void
a_list_is_split_at_commas_alone(void **state)
{
	static const char *const bad[] = { ",", "a,", ",a", "a,,b", "a, b", "a ,b", " a", "a ", "a,\tb" };
	struct flag_value v;

	(void)state;
	assert_int_equal(parse(&row_list, "a", &v), 0);
	assert_int_equal(v.list.count, 1);
	flag_value_release(&v);
	assert_int_equal(parse(&row_list, "*,-b c,\xc3\xa9", &v), 0);
	assert_int_equal(v.list.count, 3);
	assert_string_equal(v.list.items[0], "*");
	assert_string_equal(v.list.items[1], "-b c");
	assert_string_equal(v.list.items[2], "\xc3\xa9");
	assert_null(v.list.items[3]);
	flag_value_release(&v);
	for (size_t i = 0; i < COUNT(bad); i++)
		refuses(&row_list, bad[i], -EINVAL);
}

static void
an_enum_is_one_of_its_choices_to_the_letter(void **state)
{
	struct flag_value v;

	(void)state;
	assert_int_equal(parse(&row_enum, "json", &v), 0);
	assert_int_equal(v.choice, 2);
	refuses(&row_enum, "JSON", -EINVAL);
	refuses(&row_enum, "js", -EINVAL);
	refuses(&row_enum, "jsonx", -EINVAL);
	assert_string_equal(text_string(&why), "not one of the choices; write 'text', 'logfmt' or 'json'");
}

static void
an_address_is_checked_by_the_one_parser(void **state)
{
	struct flag_value v;

	(void)state;
	assert_int_equal(parse(&row_address, "[::1]:6060", &v), 0);
	assert_string_equal(v.string, "[::1]:6060");
	flag_value_release(&v);
	refuses(&row_address, "6060", -EINVAL);
	assert_non_null(strstr(text_string(&why), ":6060"));
}

static void
words_stand_for_values(void **state)
{
	static const struct component_flag row = { .name = "v", .type = COMPONENT_FLAG_TYPE_INT, .words = "error=0 debug=4 odd=5" };
	struct flag_value v;

	(void)state;
	assert_int_equal(parse(&row, "debug", &v), 0);
	assert_int_equal(v.integer, 4);
	assert_int_equal(parse(&row, "DEBUG", &v), 0);
	assert_int_equal(v.integer, 4);
	assert_int_equal(parse(&row, "2", &v), 0);
	assert_int_equal(v.integer, 2);
	refuses(&row, "debu", -EINVAL);
	refuses(&row, "debug=4", -EINVAL);
}

/* xorshift; the seed is printed by whoever fails. */
static uint64_t
next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void
what_is_written_down_is_read_back(void **state)
{
	static const struct component_flag *const rows[] = { &row_int, &row_size, &row_duration, &row_number };
	uint64_t seed = 88172645463325252u;

	(void)state;
	for (int i = 0; i < 40000; i++) {
		const struct component_flag *row = rows[i % 4];
		struct flag_value v = { .memory = NULL }, again = v;
		struct text       t = TEXT_INIT;

		v.size = next_random(&seed) >> (next_random(&seed) % 64);
		if (row == &row_number && !isfinite(v.number))
			continue;
		flag_value_format(row, &v, &t);
		if (row == &row_duration && v.integer == INT64_MIN)
			;
		else if (parse(row, t.data, &again) != 0 || !flag_value_equal(row, &v, &again))
			fail_msg("%s of %s is not itself again: %s", t.data, flag_value_type(row), text_string(&why));
		text_release(&t);
	}
}

static void
random_text_never_does_more_than_fail(void **state)
{
	static const struct component_flag *const rows[] = {
		&row_bool, &row_int, &row_number, &row_size, &row_duration, &row_list, &row_address, &row_enum,
	};
	static const char alphabet[] = "0123456789.-+eEhmsunKMGTPEiB:,[]/@%ax \t\xc2\xb5\xff\x01";
	uint64_t seed = (uint64_t)time(NULL) | 1, first = seed;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		const struct component_flag *row = rows[next_random(&seed) % COUNT(rows)];
		struct flag_value v = { .memory = NULL }, again = v;
		char              text[40];
		size_t            size = 1 + next_random(&seed) % (sizeof(text) - 1);

		for (size_t k = 0; k < size; k++)
			text[k] = alphabet[next_random(&seed) % (sizeof(alphabet) - 1)];
		text[size] = '\0';
		if (parse(row, text, &v) == 0) {
			struct text t = TEXT_INIT;

			flag_value_format(row, &v, &t);
			if (parse(row, t.data, &again) != 0 || !flag_value_equal(row, &v, &again))
				fail_msg("seed %llu: '%s' became '%s'", (unsigned long long)first, text, t.data);
			text_release(&t);
			flag_value_release(&again);
		}
		flag_value_release(&v);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bool_is_one_of_ten_words_in_any_case),
		cmocka_unit_test(an_int_is_exact_up_to_its_last_bit),
		cmocka_unit_test(an_int_is_digits_and_nothing_else),
		cmocka_unit_test(a_range_names_its_ends_in_the_units_of_the_row),
		cmocka_unit_test(a_size_is_bytes_or_a_number_and_a_unit),
		cmocka_unit_test(a_size_that_would_be_guessed_or_rounded_is_refused),
		cmocka_unit_test(a_duration_is_numbers_and_units_in_falling_order),
		cmocka_unit_test(a_duration_that_would_be_guessed_is_refused),
		cmocka_unit_test(a_number_is_decimal_and_finite),
		cmocka_unit_test(a_number_does_not_depend_on_the_locale),
		cmocka_unit_test(a_list_is_split_at_commas_alone),
		cmocka_unit_test(an_enum_is_one_of_its_choices_to_the_letter),
		cmocka_unit_test(an_address_is_checked_by_the_one_parser),
		cmocka_unit_test(words_stand_for_values),
		cmocka_unit_test(what_is_written_down_is_read_back),
		cmocka_unit_test(random_text_never_does_more_than_fail),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	text_release(&why);
	return failed;
}
