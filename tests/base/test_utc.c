/*
 * test_utc.c - our dates are libc's.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "utc.h"

static void
check(int64_t seconds)
{
	struct utc u;
	struct tm  tm;
	time_t     t = (time_t)seconds;

	utc_from_unix(seconds, &u);
	assert_non_null(gmtime_r(&t, &tm));
	assert_int_equal(u.year, tm.tm_year + 1900);
	assert_int_equal(u.month, tm.tm_mon + 1);
	assert_int_equal(u.day, tm.tm_mday);
	assert_int_equal(u.weekday, tm.tm_wday);
	assert_int_equal(u.hour, tm.tm_hour);
	assert_int_equal(u.minute, tm.tm_min);
	assert_int_equal(u.second, tm.tm_sec);
}

static void
every_day_until_the_year_2500_is_what_libc_says(void **state)
{
	int64_t day;

	(void)state;
	for (day = 0; day < 530 * 366; day++) {
		check(day * 86400);
		check(day * 86400 + 86399);
		check(day * 86400 + day * 7919 % 86400);
	}
}

static void
a_time_before_1970_is_1970(void **state)
{
	struct utc u;

	(void)state;
	utc_from_unix(-1, &u);
	assert_int_equal(u.year, 1970);
	assert_int_equal(u.second, 0);
}

static void
a_date_as_text_is_that_of_rfc_3339(void **state)
{
	char text[UTC_BYTES];

	(void)state;
	utc_text(1709210096, text);
	assert_string_equal(text, "2024-02-29T12:34:56Z");
	utc_text(-1, text);
	assert_string_equal(text, "1970-01-01T00:00:00Z");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_day_until_the_year_2500_is_what_libc_says),
		cmocka_unit_test(a_time_before_1970_is_1970),
		cmocka_unit_test(a_date_as_text_is_that_of_rfc_3339),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
