/*
 * test_target.c - what a word means that is to be looked into.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "target.h"

static void
a_process_that_has_no_record_leaves_no_sentence_of_an_error(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct target          t;
	char                   word[24];

	(void)state;
	snprintf(word, sizeof(word), "%d", (int)getpid());
	assert_int_equal(target_find(&t, word, &err), 0);
	assert_int_equal(t.pid, getpid());
	assert_string_equal(err.text, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_that_has_no_record_leaves_no_sentence_of_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
