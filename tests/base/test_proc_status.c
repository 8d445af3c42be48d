/*
 * Lines of a status file are found wherever they stand in it.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proc_status.h"

#define GROUPS_MAX 6000 /* bytes of a line before those that are wanted, more than fits into one piece */

/* With so many bytes of groups in the midst of it. */
static FILE *
status_file(int groups)
{
	FILE *f = tmpfile();

	assert_non_null(f);
	fprintf(f, "Name:\tme\nThreads:\t7\nGroups:\t");
	for (int i = 0; i < groups; i++)
		fputc(i % 6 == 5 ? ' ' : '1', f);
	fprintf(f, "\nVmStk:\t  132 kB\nSeccomp:\t2\nSeccomp_filters:\t3\n");
	assert_int_equal(fflush(f), 0);
	return f;
}

static void
lines_are_found_behind_a_long_one_of_any_length(void **state)
{
	(void)state;
	for (int groups = 0; groups < GROUPS_MAX; groups += groups < 1500 ? 1 : 97) {
		struct proc_status_line l[] = { { .key = "\nSeccomp:" }, { .key = "\nThreads:" }, { .key = "\nVmStk:" } };
		FILE                   *f = status_file(groups);

		proc_status_read(fileno(f), l, 3);
		assert_true(l[0].found && l[1].found && l[2].found);
		assert_string_equal(l[0].value, "\t2");
		assert_string_equal(l[1].value, "\t7");
		assert_string_equal(l[2].value, "\t  132 kB");
		fclose(f);
	}
}

static void
a_line_that_is_not_there_is_not_found(void **state)
{
	char  value[PROC_STATUS_BYTES];
	FILE *f = status_file(3000);

	(void)state;
	assert_false(proc_status_find(dup(fileno(f)), "\nSigQ:", value));
	assert_false(proc_status_find(-1, "\nThreads:", value));
	fclose(f);
}

static void
the_calling_threads_own_file_has_its_threads(void **state)
{
	char value[PROC_STATUS_BYTES];

	(void)state;
	assert_true(proc_status_find(proc_status_open(), "\nThreads:", value));
	assert_true(strtol(value, NULL, 10) >= 1); /* a sanitizer may have some of its own */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_found_behind_a_long_one_of_any_length),
		cmocka_unit_test(a_line_that_is_not_there_is_not_found),
		cmocka_unit_test(the_calling_threads_own_file_has_its_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
