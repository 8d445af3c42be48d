/*
 * test_demangle.c - C++ and Rust names in words, and names that somebody has crafted.
 *
 * demangle.names has names of a distribution's libraries with what c++filt says.  A long
 * run of damaged ones: TEST_STRESS=1.
 */
#include <config.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "demangle/demangle.h"
#include "demangle/room.h"

#define LIMIT    ((size_t)1 << 20)
#define NAMES    1000
#define DAMAGED  60000

static struct {
	char *mangled, *readable;
} names[NAMES];
static size_t                name_count;
static struct arena_budget   budget = { 0, LIMIT };
static struct arena          arena;
static struct demangle_room *room;

static int
setup(void **state)
{
	static char line[8192];
	const char *top = getenv("top_srcdir");
	char        path[4096];
	FILE       *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/symbols/demangle.names", top ? top : ".");
	f = fopen(path, "r");
	assert_non_null(f);
	while (name_count < NAMES && fgets(line, sizeof(line), f)) {
		char *space = strchr(line, ' ');

		if (line[0] == '#' || !space)
			continue;
		line[strcspn(line, "\n")] = '\0';
		*space = '\0';
		names[name_count].mangled = strdup(line);
		names[name_count++].readable = strdup(space + 1);
	}
	fclose(f);
	assert_true(name_count > 300);
	arena_init(&arena, &budget);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	while (name_count-- > 0) {
		free(names[name_count].mangled);
		free(names[name_count].readable);
	}
	arena_release(&arena);
	return 0;
}

/* Until the next call. */
static const char *
words(const char *name)
{
	arena_release(&arena);
	room = NULL;
	return demangle(name, &room, &arena);
}

static void
check(const char *name, const char *want)
{
	const char *got = words(name);

	if (want) {
		assert_non_null(got);
		assert_string_equal(got, want);
	} else
		assert_null(got);
}

static void
names_of_libraries_are_in_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < name_count; i++) {
		const char *got = words(names[i].mangled);

		if (!got || strcmp(got, names[i].readable) != 0)
			fail_msg("%s: %s, not %s", names[i].mangled, got ? got : "nothing", names[i].readable);
	}
}

static void
what_is_behind_a_name_is_shown_behind_it(void **state)
{
	(void)state;
	check("_ZL4workji.constprop.0", "work(unsigned int, int) [clone .constprop.0]");
	check("_Z1fv.part.0.isra.1.cold", "f() [clone .part.0] [clone .isra.1] [clone .cold]");
	check("_Z1fv.llvm.1234", "f() [clone .llvm.1234]");
	check("_Z1fv.", "f().");
	check("_Z1fi@plt", "f(int)@plt");
	check("_Z1fi.cold@plt", "f(int) [clone .cold]@plt");
	check("_RNvC1a1b.llvm.77", "a::b [clone .llvm.77]");
	check("_ZN1a1b17h0123456789abcdefE.llvm.77", "a::b [clone .llvm.77]");
}

static void
check_short(const char *name, const char *want)
{
	const char *got;

	arena_release(&arena);
	room = NULL;
	got = demangle_short(name, &room, &arena);
	assert_non_null(got);
	assert_string_equal(got, want);
}

static void
a_short_name_has_no_arguments(void **state)
{
	(void)state;
	check_short("_ZN12_GLOBAL__N_11fIiEET_S1_.cold", "(anonymous namespace)::f");
	check_short("_ZNKSt8functionIFviEEclEi", "std::function::operator()");
	check_short("_ZNSt6thread11_State_implINS_8_InvokerISt5tupleIJPFvvEEEEEE6_M_runEv", "std::thread::_State_impl::_M_run");
	check_short("_ZSt13__invoke_implIvZ4mainEUlvE_JEET_St14__invoke_otherOT0_DpOT1_", "std::__invoke_impl");
	check_short("_ZZNK1a1fEiENKUlbE_clEb", "a::f() const::{lambda(bool)#1}::operator()");
	check_short("_ZN1AltIiEEbT_", "A::operator<");
	check_short("_ZN1AcvPT_IcEEv", "A::operator char*");
	check_short("_ZThn16_N1B1fESt6vectorIiSaIiEE", "non-virtual thunk to B::f(std::vector)");
	check_short("_ZNSsC2IPcEET_S1_RKSaIcE", "std::basic_string::basic_string");
	check_short("_Z1fi@plt", "f");
	check_short("_Z1fGARBAGE", "f"); /* nobody looks at what is left out */
	check_short("_RINvNtC4core3ptr13drop_in_placeINtC5alloc3VechEE", "core::ptr::drop_in_place::<>");
	check_short("_RINvC1a1bDNtB2_5Traitp4ItemlEL_E.llvm.77", "a::b::<>");
	check_short("_ZN4core3ptr4drop17h0123456789abcdefE.llvm.77", "core::ptr::drop");
	check("_ZN1AltIiEEbT_", "bool A::operator< <int>(int)"); /* and is long the next time */
}

static void
the_older_names_of_rust_lose_their_hash(void **state)
{
	(void)state;
	check("_ZN4core3ptr4drop17h0123456789abcdefE", "core::ptr::drop");
	check("_ZN67_$LT$std..path..Path$u20$as$u20$core..convert..AsRef$LT$str$GT$$GT$6as_ref17h0123456789abcdefE",
	      "<std::path::Path as core::convert::AsRef<str>>::as_ref");
	check("_ZN3foo28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE", "foo::{{closure}}");
	check("_ZN3foo17h0123456789abcdeXE", "foo::h0123456789abcdeX"); /* C++ */
}

static void
names_of_rust_are_in_words(void **state)
{
	(void)state;
	check("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
	check("_RNCNvC1a1b0", "a::b::{closure#0}");
	check("_RINvC1a1bRShEB2_", "a::b::<&[u8]>");
	check("_RINvC1a1bFKCjEuE", "a::b::<extern \"C\" fn(usize)>");
	check("_RINvC1a1bDNtB2_5Traitp4ItemlEL_E", "a::b::<dyn a::Trait<Item = i32>>");
	check("_RINvC1a1bKb1_Kc41_Kan7f_E", "a::b::<true, 'A', -127>");
	check("_RNvC6_123foo3bar", "123foo::bar");
	check("_RNvC1au7caf_dma", "a::caf\xc3\xa9");
	check("_RNvC1aB9_", NULL); /* forward */
}

static void
a_lambda_is_called_by_what_it_takes(void **state)
{
	(void)state;
	check("_ZZ1fvENKUlT_E_clIiEEDaS_", "auto f()::{lambda(auto:1)#1}::operator()<int>(int) const");
	check("_ZN1AcvT_IiEEv", "A::operator int<int>()");
	check("_Z1fIJidEEvDpT_", "void f<int, double>(int, double)");
	check("_Z1fIJEEviDpRKT_", "void f<>(int)");
	check("_Z1fPFivE", "f(int (*)())");
	check("_Z1fRA3_Kc", "f(char const (&) [3])");
	check("_Z1fIRiEvOT_", "void f<int&>(int&)");
	check("_Z1fIOiEvRKT_", "void f<int&&>(int&)");
}

static void
a_long_name_of_rust_is_cut(void **state)
{
	static char name[16000];
	size_t      n, whole;

	(void)state;
	for (int is_dyn = 0; is_dyn < 2; is_dyn++) { /* a tuple of paths; then an object of many traits */
		n = (size_t)sprintf(name, "_RINvC1a1b%c", is_dyn ? 'D' : 'T');
		for (int i = 0; i < 180; i++)
			n += (size_t)sprintf(name + n, "NtC5crate24a_structure_of_that_name");
		sprintf(name + n, is_dyn ? "EL_E" : "EE");
		assert_non_null(words(name));
		whole = strlen(words(name));
		assert_int_equal(whole, DEMANGLE_RESULT_MAX);
		assert_memory_equal(words(name), is_dyn ? "a::b::<dyn crate::a_" : "a::b::<(crate::a_str", 20);
	}
}

static void *
look_at_packs(void *arg)
{
	static char packs[8001];

	for (const char *x = "IJ"; *x; x++) {
		memset(packs, *x, sizeof(packs) - 1);
		memcpy(packs, "_Z1fI", 5);
		check(packs, NULL);
	}
	return arg;
}

static void
packs_in_packs_take_no_more_stack_than_a_thread_of_ours_has(void **state)
{
	pthread_attr_t attr;
	pthread_t      thread;

	(void)state;
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, 256 << 10), 0);
	assert_int_equal(pthread_create(&thread, &attr, look_at_packs, NULL), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
}

static void
a_crafted_name_stays_as_it_is(void **state)
{
	static char deep[1200], wide[400], long_name[20000];
	size_t      n;

	(void)state;
	n = (size_t)sprintf(deep, "_Z1f");
	memset(deep + n, 'P', 1000);
	strcpy(deep + n + 1000, "i");
	check(deep, NULL);
	n = (size_t)sprintf(wide, "_Z1f1aIiiE");
	for (const char *x = "0123456789ABCDEFGHIJKLMN"; *x; x++)
		n += (size_t)sprintf(wide + n, "S_IS%c_S%c_E", *x, *x);
	assert_true(!words(wide) || strlen(words(wide)) <= DEMANGLE_RESULT_MAX);
	memset(long_name, 'i', sizeof(long_name) - 1);
	memcpy(long_name, "_Z1f", 4);
	check(long_name, NULL);
	check("_Z", NULL);
	check("_R", NULL);
	check("_ZN", NULL);
	check("_ZN1aCI", NULL);
	check("_Z99999999999999999999f", NULL);
	check("_Z1fT_", NULL);
	check("_Z1fS_", NULL);
	check("_Z1fIiEvT99999999999999999_", NULL);
	check("main", NULL);
	check("", NULL);
}

/* A name that refers to itself over and over takes steps, not time. */
static void
steps_are_counted(void **state)
{
	char   name[4000];
	size_t n = (size_t)sprintf(name, "_Z1f1aIJEE");

	(void)state;
	for (int i = 0; i < 200; i++)
		n += (size_t)sprintf(name + n, "1aIJS%.0d_S%.0d_S%.0d_EE", 0, 0, 0);
	words(name);
	assert_true(room->out.steps <= DEMANGLE_STEPS_MAX + DEMANGLE_DEPTH_MAX);
}

static uint32_t
next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Of its own size in malloc()'s memory, so that a sanitizer sees a step behind its end. */
static char *
damaged(uint32_t *seed)
{
	static const char letters[] = "_ZNSTIJELDKPROFAMUXZ0123456789abcdefghiklmnoprstuvwxyz.$@";
	const char       *from = names[next(seed) % name_count].mangled, *other = names[next(seed) % name_count].mangled;
	size_t            size = strlen(from), cut = next(seed) % (strlen(other) + 1);
	char             *name = malloc(size + strlen(other) + 1);

	assert_non_null(name);
	strcpy(name, from);
	if (next(seed) % 4 == 0)
		strcpy(name + next(seed) % (size + 1), other + cut);
	size = strlen(name);
	for (unsigned i = next(seed) % 4; i > 0 && size > 2; i--)
		name[2 + next(seed) % (size - 2)] = letters[next(seed) % (sizeof(letters) - 1)];
	if (next(seed) % 4 == 0)
		name[next(seed) % (size + 1)] = '\0';
	return realloc(name, strlen(name) + 1);
}

static void
damaged_names_do_no_harm(void **state)
{
	uint32_t seed = 1;
	unsigned n = getenv("TEST_STRESS") ? 100 * DAMAGED : DAMAGED, readable = 0;

	(void)state;
	for (unsigned i = 0; i < n; i++) {
		char       *name = damaged(&seed);
		const char *got;

		assert_non_null(name);
		got = demangle(name, &room, &arena);
		if (got) {
			assert_true(strlen(got) <= DEMANGLE_RESULT_MAX);
			readable++;
		}
		if (room)
			assert_true(room->out.steps <= 2 * DEMANGLE_STEPS_MAX);
		got = demangle_short(name, &room, &arena);
		assert_true(!got || strlen(got) <= DEMANGLE_RESULT_MAX);
		assert_true(!room || room->out.steps <= 2 * DEMANGLE_STEPS_MAX);
		if (i % 64 == 0) {
			arena_release(&arena);
			room = NULL;
		}
		free(name);
	}
	print_message("# %u of %u damaged names are names\n", readable, n);
	assert_true(readable > n / 100 && readable < n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_libraries_are_in_words),
		cmocka_unit_test(what_is_behind_a_name_is_shown_behind_it),
		cmocka_unit_test(a_short_name_has_no_arguments),
		cmocka_unit_test(the_older_names_of_rust_lose_their_hash),
		cmocka_unit_test(names_of_rust_are_in_words),
		cmocka_unit_test(a_lambda_is_called_by_what_it_takes),
		cmocka_unit_test(a_long_name_of_rust_is_cut),
		cmocka_unit_test(packs_in_packs_take_no_more_stack_than_a_thread_of_ours_has),
		cmocka_unit_test(a_crafted_name_stays_as_it_is),
		cmocka_unit_test(steps_are_counted),
		cmocka_unit_test(damaged_names_do_no_harm),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
