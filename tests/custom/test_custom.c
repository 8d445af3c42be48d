/*
 * test_custom.c - profiles that a program keeps itself.
 */
#include <config.h>

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include <component/profiler.h>

#include "collector.h"
#include "custom/custom.h"
#include "stack_table.h"
#include "unwind.h"

#define VALUE(n) ((const void *)(uintptr_t)(n))

static struct component_profile *
made(const char *name)
{
	struct component_profile *p = NULL;

	assert_int_equal(component_profile_new(name, &p, NULL), 0);
	assert_non_null(p);
	return p;
}

static int
snapshot_of(const struct component_profile *p, struct profile *ret)
{
	const struct collector *c = (const struct collector *)p;
	struct product          product;
	int                     r = c->snapshot(c, &(struct collect_params){ 0 }, &product);

	assert_int_equal(product.type, PRODUCT_PROFILE);
	*ret = product.profile;
	return r;
}

static int64_t
total(const struct component_profile *p, size_t *ret_stacks)
{
	struct profile snapshot;
	int64_t        sum = 0;

	(void)p;
	assert_int_equal(snapshot_of(p, &snapshot), 0);
	for (size_t i = 0; i < snapshot.count; i++)
		sum += snapshot.samples[i].values[0];
	*ret_stacks = snapshot.count;
	profile_release(&snapshot);
	return sum;
}

__attribute__((noinline)) static int
open_here(struct component_profile *p, uintptr_t value)
{
	int r = component_profile_add(p, VALUE(value), 0);

	__asm__ volatile("" ::: "memory"); /* no tail call: this function is in the stack */
	return r;
}

__attribute__((noinline)) static int
open_there(struct component_profile *p, uintptr_t value, unsigned skip)
{
	int r = component_profile_add(p, VALUE(value), skip);

	__asm__ volatile("" ::: "memory");
	return r;
}

static void
what_is_added_is_there_until_it_is_removed(void **state)
{
	struct component_profile *p = made("files");
	size_t                    stacks;

	(void)state;
	for (uintptr_t i = 0; i < 10; i++)
		assert_int_equal(open_here(p, i), 0);
	assert_int_equal(open_there(p, 100, 0), 0);
	assert_int_equal(component_profile_count(p), 11);
	assert_int_equal(total(p, &stacks), 11);
	assert_int_equal(stacks, 2);
	assert_int_equal(open_here(p, 3), -EEXIST);
	assert_int_equal(component_profile_count(p), 11);
	assert_int_equal(component_profile_remove(p, VALUE(3)), 0);
	assert_int_equal(component_profile_remove(p, VALUE(3)), -ENOENT);
	assert_int_equal(component_profile_remove(p, VALUE(77)), -ENOENT);
	assert_int_equal(total(p, &stacks), 10);
	for (uintptr_t i = 0; i < 10; i++)
		component_profile_remove(p, VALUE(i));
	component_profile_remove(p, VALUE(100));
	assert_int_equal(total(p, &stacks), 0);
	assert_int_equal(stacks, 0);
}

static void
skip_leaves_out_the_nearest_frames(void **state)
{
	struct component_profile *p = made("skips");
	struct profile            all;
	const uintptr_t          *pcs;
	uintptr_t                 first[3] = { 0 };
	unsigned                  n;

	(void)state;
	for (unsigned skip = 0; skip < 3; skip++) {
		assert_int_equal(open_there(p, 1, skip == 2 ? 1000 : skip), 0);
		assert_int_equal(snapshot_of(p, &all), 0);
		pcs = stack_table_pcs(all.samples[0].stack, &n);
		first[skip] = pcs[0];
		profile_release(&all);
		component_profile_remove(p, VALUE(1));
	}
	assert_true(first[0] >= (uintptr_t)open_there && first[0] < (uintptr_t)open_there + 256);
	assert_true(first[1] < (uintptr_t)open_there || first[1] >= (uintptr_t)open_there + 256);
	assert_true(first[2] != 0); /* more than there are: the last one is left */
}

/* A table that is filled and emptied in every order is found again by a plain one. */
static void
many_comings_and_goings_keep_the_table_right(void **state)
{
	enum { VALUES = 5000 };
	static unsigned char      there[VALUES];
	struct component_profile *p = made("churn");
	uint32_t                  x = 7;
	size_t                    count = 0, stacks;

	(void)state;
	for (int i = 0; i < 300000; i++) {
		uintptr_t v;

		x = x * 1664525 + 1013904223;
		v = x >> 8;
		v %= VALUES;
		if (there[v]) {
			assert_int_equal(component_profile_remove(p, VALUE(v * 64)), 0);
			count--;
		} else {
			assert_int_equal(component_profile_add(p, VALUE(v * 64), 0), 0);
			count++;
		}
		there[v] ^= 1;
	}
	assert_int_equal(component_profile_count(p), count);
	assert_int_equal(total(p, &stacks), count);
	for (uintptr_t v = 0; v < VALUES; v++)
		assert_int_equal(component_profile_remove(p, VALUE(v * 64)), there[v] ? 0 : -ENOENT);
	assert_int_equal(component_profile_count(p), 0);
}

/* With so many more bytes of address space, and no more. */
static int
snapshot_within(size_t more, const struct component_profile *p, struct profile *ret)
{
	unsigned long pages = 0;
	FILE         *f = fopen("/proc/self/statm", "re");
	struct rlimit old, limit;
	int           r;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
	limit = (struct rlimit){ pages * (rlim_t)getpagesize() + more, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	r = snapshot_of(p, ret);
	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
	return r;
}

/* Its snapshot has one sample, not as many as there are values. */
static void
a_full_profile_refuses_and_says_so(void **state)
{
	struct component_profile *p = made("full");
	struct profile            all;

	(void)state;
	for (uintptr_t i = 0; i < CUSTOM_VALUES_MAX; i++)
		assert_int_equal(component_profile_add(p, VALUE(i), 0), 0);
	assert_int_equal(component_profile_add(p, VALUE(CUSTOM_VALUES_MAX), 0), -ENOSPC);
	assert_int_equal(component_profile_count(p), CUSTOM_VALUES_MAX);
	assert_int_equal(snapshot_within(CUSTOM_VALUES_MAX * sizeof(struct profile_sample) / 4, p, &all), 0);
	assert_int_equal(all.count, 1);
	assert_int_equal(all.samples[0].values[0], CUSTOM_VALUES_MAX);
	assert_non_null(strstr(all.comments, "full: 1 values were not added, there was no room"));
	profile_release(&all);
	for (uintptr_t i = 0; i < CUSTOM_VALUES_MAX; i++)
		assert_int_equal(component_profile_remove(p, VALUE(i)), 0);
}

static void
names_that_cannot_be_had_are_refused_with_a_sentence(void **state)
{
	static const struct { const char *name, *says; int error; } rows[] = {
		{ "", "1 to 63 bytes", -EINVAL }, { NULL, "1 to 63 bytes", -EINVAL },
		{ "a/b", "letters, digits", -EINVAL }, { "a b", "letters, digits", -EINVAL },
		{ "..", "dots alone", -EINVAL }, { "heap", "is a profile already", -EEXIST },
		{ "cmdline", "is a profile already", -EEXIST }, { "symbol", "is a page", -EINVAL },
		{ "twice", "is a profile already", -EEXIST },
		{ "0123456789012345678901234567890123456789012345678901234567890123", "1 to 63 bytes", -EINVAL },
	};
	struct component_profile *first = made("twice"), *p = NULL;
	struct component_error    err = COMPONENT_ERROR_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		err = (struct component_error)COMPONENT_ERROR_INIT;
		assert_int_equal(component_profile_new(rows[i].name, &p, &err), rows[i].error);
		assert_non_null(strstr(err.text, rows[i].says));
		assert_null(p);
	}
	assert_ptr_equal(component_profile_lookup("twice"), first);
	assert_null(component_profile_lookup("never"));
}

/* ---- a locale in which a byte beyond ASCII is a letter ---- */

#ifdef __GLIBC__
static bool is_latin;

/* What isalnum() reads. */
const unsigned short **
__ctype_b_loc(void)
{
	static const unsigned short **(*next)(void);
	static unsigned short         latin[384];
	static const unsigned short  *middle = latin + 128;

	if (!next)
		next = (const unsigned short **(*)(void))dlsym(RTLD_NEXT, "__ctype_b_loc");
	if (!is_latin)
		return next();
	memcpy(latin, *next() - 128, sizeof(latin));
	latin[128 + 0xe9] |= _ISalnum;
	return &middle;
}

static void
no_locale_makes_a_letter_of_a_name(void **state)
{
	struct component_profile *p = NULL;
	struct component_error    err = COMPONENT_ERROR_INIT;
	int                       r;

	(void)state;
	is_latin = true;
	r = isalnum(0xe9) ? component_profile_new("caf\xe9", &p, &err) : 0;
	is_latin = false;
	assert_int_equal(r, -EINVAL);
	assert_non_null(strstr(err.text, "letters, digits"));
}
#endif

/* component_profile_lookup() may have answered so. */
static void
no_profile_takes_no_value(void **state)
{
	struct component_profile *none = component_profile_lookup("heap");

	(void)state;
	assert_null(none);
	assert_int_equal(component_profile_add(none, VALUE(1), 0), -EINVAL);
	assert_int_equal(component_profile_remove(none, VALUE(1)), -EINVAL);
	assert_int_equal(component_profile_count(none), 0);
}

static void
a_child_has_the_values_of_its_parent(void **state)
{
	struct component_profile *p = made("forked");
	size_t                    stacks;
	int                       status;
	pid_t                     pid;

	(void)state;
	assert_int_equal(open_here(p, 1), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(component_profile_count(p) != 1 || open_here(p, 2) || total(p, &stacks) != 2 ||
			component_profile_remove(p, VALUE(1)));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(component_profile_count(p), 1);
	component_profile_remove(p, VALUE(1));
}

static int forked, failed;

/* The timer is set anew at the end, so that who was interrupted goes on a bit. */
static void
fork_and_go_on(int number)
{
	struct itimerval soon = { .it_value = { .tv_usec = 50 } };
	int              status;
	pid_t            pid = fork();

	(void)number;
	if (pid == 0)
		_exit(open_here(component_profile_lookup("interrupted"), 1000000) != 0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		failed++;
	if (++forked < 300)
		setitimer(ITIMER_REAL, &soon, NULL);
}

static void
a_handler_that_interrupts_it_may_fork_and_its_child_may_go_on(void **state)
{
	struct component_profile *p = made("interrupted");
	struct itimerval          soon = { .it_value = { .tv_usec = 50 } };

	(void)state;
	signal(SIGALRM, fork_and_go_on);
	setitimer(ITIMER_REAL, &soon, NULL);
	while (*(volatile int *)&forked < 300) {
		component_profile_add(p, VALUE(1), 0);
		component_profile_remove(p, VALUE(1));
	}
	assert_int_equal(failed, 0);
}

static void *
churn(void *arg)
{
	struct component_profile *p = component_profile_lookup("threads-of-it");
	uintptr_t                 base = (uintptr_t)arg * 1000;
	intptr_t                  bad = 0;

	for (uintptr_t round = 0; round < 200; round++) {
		for (uintptr_t i = 0; i < 100; i++)
			bad += component_profile_add(p, VALUE(base + i), 0) != 0;
		for (uintptr_t i = 0; i < 100; i++)
			bad += component_profile_remove(p, VALUE(base + i)) != 0;
	}
	return (void *)bad;
}

static void
threads_add_and_remove_while_others_read(void **state)
{
	struct component_profile *p = made("threads-of-it");
	pthread_t                 threads[4];
	size_t                    stacks;
	void                     *bad;

	(void)state;
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
	for (int i = 0; i < 50; i++)
		assert_true(total(p, &stacks) <= 400);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &bad);
		assert_null(bad);
	}
	assert_int_equal(component_profile_count(p), 0);
}

static void
no_more_than_64_and_the_list_is_sorted(void **state)
{
	const struct collector        *list[COLLECTORS_ALL_MAX];
	struct component_profile *p = NULL;
	struct component_error    err = COMPONENT_ERROR_INIT;
	char                      name[16];
	size_t                    all, n = collector_list(list) - collector_count;

	(void)state;
	for (; n < CUSTOM_PROFILES_MAX; n++) {
		snprintf(name, sizeof(name), "p%02zu", (n * 37) % 100);
		made(name);
	}
	assert_int_equal(component_profile_new("one-more", &p, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "there are 64 already"));
	all = collector_list(list);
	assert_int_equal(all, collector_count + CUSTOM_PROFILES_MAX);
	for (n = 1; n < all; n++)
		assert_true(strcmp(list[n - 1]->name, list[n]->name) < 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_added_is_there_until_it_is_removed),
		cmocka_unit_test(skip_leaves_out_the_nearest_frames),
		cmocka_unit_test(many_comings_and_goings_keep_the_table_right),
		cmocka_unit_test(a_full_profile_refuses_and_says_so),
		cmocka_unit_test(names_that_cannot_be_had_are_refused_with_a_sentence),
#ifdef __GLIBC__
		cmocka_unit_test(no_locale_makes_a_letter_of_a_name),
#endif
		cmocka_unit_test(no_profile_takes_no_value),
		cmocka_unit_test(a_child_has_the_values_of_its_parent),
		cmocka_unit_test(a_handler_that_interrupts_it_may_fork_and_its_child_may_go_on),
		cmocka_unit_test(threads_add_and_remove_while_others_read),
		cmocka_unit_test(no_more_than_64_and_the_list_is_sorted),
	};
	int r;

	unwind_start(UNWIND_TABLES);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	unwind_stop();
	return r;
}
