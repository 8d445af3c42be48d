/* Whose are which addresses: profiler/collect/resident/ranges.c. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "resident/ranges.h"

static void
is(const struct ranges *r, size_t i, uintptr_t start, uintptr_t limit, int row)
{
	assert_true(i < r->count);
	assert_int_equal(r->all[i].start, start);
	assert_int_equal(r->all[i].limit, limit);
	assert_int_equal(r->all[i].row, row);
}

static void
what_overlaps_in_one_list_is_the_earlier_ones(void **state)
{
	struct ranges r = { NULL, 0, 0 };

	(void)state;
	ranges_add(&r, 30, 60, 2);
	ranges_add(&r, 10, 40, 1);
	ranges_add(&r, 35, 38, 3);
	ranges_add(&r, 70, 70, 4);
	ranges_sort(&r);
	assert_int_equal(r.count, 2);
	is(&r, 0, 10, 40, 1);
	is(&r, 1, 40, 60, 2);
	ranges_release(&r);
}

static void
a_list_below_shows_in_the_gaps_alone(void **state)
{
	struct ranges top = { NULL, 0, 0 }, below = { NULL, 0, 0 };

	(void)state;
	ranges_add(&top, 20, 30, 1);
	ranges_add(&top, 40, 50, 1);
	ranges_add(&below, 0, 10, 2);
	ranges_add(&below, 15, 45, 3);
	ranges_add(&below, 45, 60, 4);
	assert_int_equal(ranges_lay_under(&top, &below), 0);
	assert_int_equal(top.count, 6);
	is(&top, 0, 0, 10, 2);
	is(&top, 1, 15, 20, 3);
	is(&top, 2, 20, 30, 1);
	is(&top, 3, 30, 40, 3);
	is(&top, 4, 40, 50, 1);
	is(&top, 5, 50, 60, 4);
	ranges_release(&top);
}

static void
an_address_is_found_in_or_before_a_range(void **state)
{
	struct ranges r = { NULL, 0, 0 };

	(void)state;
	for (uintptr_t i = 0; i < 1000; i++)
		ranges_add(&r, i * 10, i * 10 + 5, (int)i);
	assert_int_equal(ranges_find(&r, 0), 0);
	assert_int_equal(ranges_find(&r, 4), 0);
	assert_int_equal(ranges_find(&r, 5), 1);
	assert_int_equal(ranges_find(&r, 9990), 999);
	assert_int_equal(ranges_find(&r, 9995), 1000);
	ranges_release(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_overlaps_in_one_list_is_the_earlier_ones),
		cmocka_unit_test(a_list_below_shows_in_the_gaps_alone),
		cmocka_unit_test(an_address_is_found_in_or_before_a_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
