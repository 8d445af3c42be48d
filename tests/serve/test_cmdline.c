/*
 * test_cmdline.c - argv joined by NULs, the values of secret options replaced.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "routes.h"

static const char *const redact[] = { "api-key", "--pass", NULL };

/* '|' stands for NUL. */
static void
check(const char *words, const char *want)
{
	char  *raw = strdup(words), *got, *expected = strdup(want);
	size_t size = 0, n = strlen(words);

	for (char *p = raw; *p; p++)
		if (*p == '|')
			*p = '\0';
	for (char *p = expected; *p; p++)
		if (*p == '|')
			*p = '\0';
	got = cmdline_redact(raw, n, redact, &size);
	assert_non_null(got);
	assert_int_equal(size, strlen(want));
	assert_memory_equal(got, expected, size);
	free(got);
	free(raw);
	free(expected);
}

static void
words_are_joined_and_nothing_is_appended(void **state)
{
	(void)state;
	check("./a|-x|127.0.0.1:1|", "./a|-x|127.0.0.1:1");
	check("./a|", "./a");
	check("./a||b||", "./a||b|");
	check("rewritten title", "rewritten title");
	check("", "");
}

static void
values_of_secret_options_are_replaced(void **state)
{
	(void)state;
	check("a|--api-key=s|x|", "a|--api-key=REDACTED|x");
	check("a|--api-key|s|x|", "a|--api-key|REDACTED|x");
	check("a|--api_key=s|", "a|--api_key=REDACTED");
	check("a|-pass|s|", "a|-pass|REDACTED");
	check("a|--pass|", "a|--pass");
	check("a|--pass||b|", "a|--pass|REDACTED|b");
	check("a|--pass=|", "a|--pass=REDACTED");
	check("a|--password=s|--api-key-file=f|api-key=s|", "a|--password=s|--api-key-file=f|api-key=s");
	check("a|--pass|--pass|s|", "a|--pass|REDACTED|s");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_joined_and_nothing_is_appended),
		cmocka_unit_test(values_of_secret_options_are_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
