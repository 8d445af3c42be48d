/*
 * test_functions.c - where functions begin, and which ones they go on in.
 */
#include <config.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "functions.h"
#include "tables.h"

static volatile int sink;

static __attribute__((noinline)) void
first(void)
{
	sink++;
}

static __attribute__((noinline)) void
second(void)
{
	sink--;
}

static struct memory memory;

static void
each_address_of_a_function_leads_to_its_begin(void **state)
{
	uintptr_t              begins[] = { (uintptr_t)first, (uintptr_t)second };
	struct functions_range f;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_true(functions_around(&memory, begins[i], &f));
		assert_true(f.begin == begins[i]);
		assert_true(f.end > f.begin);
		assert_true(functions_around(&memory, f.end - 1, &f));
		assert_true(f.begin == begins[i]);
	}
}

static void
what_is_no_code_has_none(void **state)
{
	struct functions_range f;

	(void)state;
	assert_false(functions_around(&memory, (uintptr_t)&sink, &f));
	assert_false(functions_around(&memory, 0, &f));
	assert_false(functions_around(&memory, (uintptr_t)&f, &f));
}

/* Assembled here, as a compiler may make a call of the last statement. */
#if defined __x86_64__
#define JUMPS "jmp jumped_far\n\tje jumped_far\n\tcall never_jumped\n"
#elif defined __aarch64__
#define JUMPS "b jumped_far\n\tb.eq jumped_far\n\tbl never_jumped\n"
#endif
#ifdef JUMPS
/* Global: aarch64's linker takes the addresses of local ones, asked of the GOT, for the section's. */
#define FUNCTION(name, code)                                                                                     \
	__asm__(".text\n.p2align 4\n.globl " name "\n.hidden " name "\n.type " name ", %function\n" name ":\n.cfi_startproc\n\t" code "\n.cfi_endproc\n" \
		".size " name ", .-" name "\n")

FUNCTION("jumping", JUMPS "\tret");
FUNCTION("never_jumped", ".skip 512\n\tret"); /* so that no jump is a short one */
FUNCTION("jumped_far", "ret");
extern const char jumping[], jumped_far[];

static void
a_jump_at_the_end_leads_to_the_function_that_goes_on(void **state)
{
	struct functions_range f, to[4];

	(void)state;
	assert_true(functions_around(&memory, (uintptr_t)jumping, &f));
	assert_true(f.begin == (uintptr_t)jumping);
	assert_int_equal(functions_jumped_to(&memory, &f, to, 4), 1);
	assert_true(to[0].begin == (uintptr_t)jumped_far);
}
#endif

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_address_of_a_function_leads_to_its_begin),
		cmocka_unit_test(what_is_no_code_has_none),
#ifdef JUMPS
		cmocka_unit_test(a_jump_at_the_end_leads_to_the_function_that_goes_on),
#endif
	};
	int r;

	if (memory_open(&memory) < 0 || tables_build() < 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	tables_drop();
	memory_close(&memory);
	return r;
}
