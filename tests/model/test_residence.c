/*
 * test_residence.c - struct residence: rows are found again by class, name and stack.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "residence.h"

static void
a_row_is_found_again_whatever_bytes_its_name_has(void **state)
{
	struct residence r;

	(void)state;
	residence_init(&r);
	assert_int_equal(residence_row(&r, RESIDENCE_FILES, "/tmp/a\xff\n", 0), 0);
	assert_int_equal(residence_row(&r, RESIDENCE_FILES, "/tmp/a\xff\n", 0), 0);
	assert_int_equal(residence_row(&r, RESIDENCE_SHARED, "/tmp/a\xff\n", 0), 1);
	assert_int_equal(residence_row(&r, RESIDENCE_FILES, "/tmp/a??", 0), 2); /* another file */
	assert_int_equal(residence_row(&r, RESIDENCE_FILES, "/tmp/a??", 0), 2);
	assert_int_equal(r.count, 3);
	assert_string_equal(r.rows[0].name, "/tmp/a??");
	residence_release(&r);
	assert_int_equal(r.budget.used, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_is_found_again_whatever_bytes_its_name_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
