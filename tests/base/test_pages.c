/* Our own mappings and what they are for: libcomponent/base/pages.c. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pages.h"

static size_t
noted(const void *p)
{
	uintptr_t   start;
	const char *file;
	size_t      bytes;

	for (unsigned i = 0; i < PAGES_KEPT; i++) {
		bytes = pages_noted(i, &start, &file);
		if (bytes && start == (uintptr_t)p) {
			assert_non_null(strstr(file, "test_pages.c"));
			return bytes;
		}
	}
	return 0;
}

static void
a_mapping_is_noted_until_it_goes(void **state)
{
	void *p = pages_map(8192);

	(void)state;
	assert_int_equal(noted(p), 8192);
	pages_unmap(p, 8192);
	assert_int_equal(noted(p), 0);
}

static void
an_array_that_grows_is_noted_where_it_went(void **state)
{
	size_t room = 0;
	int   *p = pages_grow(NULL, &room, 1024, sizeof(*p)), *more;

	(void)state;
	assert_int_equal(noted(p), 4096);
	more = pages_grow(p, &room, 1024, sizeof(*p));
	assert_int_equal(noted(more), 8192);
	if (more != p)
		assert_int_equal(noted(p), 0);
	pages_unmap(more, room * sizeof(*p));
	assert_int_equal(noted(more), 0);
}

/* More than can be noted: the memory is there all the same, and the notes of the others are right. */
static void
what_finds_no_place_is_mapped_all_the_same(void **state)
{
	static char *all[PAGES_KEPT + 512];
	size_t       known = 0;

	(void)state;
	for (size_t i = 0; i < PAGES_KEPT + 512; i++) {
		all[i] = pages_map(4096);
		assert_non_null(all[i]);
		*all[i] = 1;
	}
	for (size_t i = 0; i < PAGES_KEPT + 512; i += 64)
		known += noted(all[i]) == 4096;
	assert_true(known > PAGES_KEPT / 64 * 3 / 4);
	for (size_t i = 0; i < PAGES_KEPT + 512; i++)
		pages_unmap(all[i], 4096);
	for (size_t i = 0; i < PAGES_KEPT + 512; i += 64)
		assert_int_equal(noted(all[i]), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mapping_is_noted_until_it_goes),
		cmocka_unit_test(an_array_that_grows_is_noted_where_it_went),
		cmocka_unit_test(what_finds_no_place_is_mapped_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
