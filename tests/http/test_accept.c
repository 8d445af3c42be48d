/*
 * test_accept.c - what a client wants, by headers as clients send them.
 */
#include <config.h>

#include "accept.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void
the_quality_of_a_word_is_what_stands_behind_it(void **state)
{
	static const struct {
		const char *header, *word;
		int         quality;
	} rows[] = {
		{ NULL, "gzip", 0 }, { "", "gzip", 0 }, { "gzip", "gzip", 1000 }, { "deflate, GZIP", "gzip", 1000 },
		{ "gzip;q=0", "gzip", 0 }, { "gzip;q=0.0", "gzip", 0 }, { "gzip; q=0.5, br", "gzip", 500 },
		{ "gzip;q=0.125", "gzip", 125 }, { "gzip;q=1.000", "gzip", 1000 }, { "gzip;q=x", "gzip", 1000 },
		{ "xgzip, gzipx", "gzip", 0 }, { ",, gzip ,", "gzip", 1000 }, { "gzip;q=9", "gzip", 1000 },
		{ "text/html;level=1;q=0.4", "text/html", 400 }, { "text/*;q=0.3", "text/html", 0 },
		{ "gzip;x=q=0", "gzip", 1000 },
		{ "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
			"text/plain", 300 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(accept_quality(rows[i].header, rows[i].word), rows[i].quality);
}

static void
entries_have_their_parameters(void **state)
{
	const char *at = "text/plain, application/json; v=v1beta1;g=config.k8s.io ;as=Statusz;q=0.9";
	struct accept_entry e;
	const char *value;
	size_t      size;

	(void)state;
	assert_true(accept_next(&at, &e));
	assert_true(accept_is(&e, "text/plain"));
	assert_null(accept_parameter(&e, "v", &size));
	assert_true(accept_next(&at, &e));
	assert_true(accept_is(&e, "application/json"));
	assert_int_equal(e.quality, 900);
	value = accept_parameter(&e, "g", &size);
	assert_non_null(value);
	assert_int_equal(size, strlen("config.k8s.io"));
	assert_memory_equal(value, "config.k8s.io", size);
	value = accept_parameter(&e, "v", &size);
	assert_non_null(value);
	assert_memory_equal(value, "v1beta1", size);
	assert_null(accept_parameter(&e, "a", &size));
	assert_false(accept_next(&at, &e));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_quality_of_a_word_is_what_stands_behind_it),
		cmocka_unit_test(entries_have_their_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
