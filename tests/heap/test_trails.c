/*
 * test_trails.c - sites that are found by where a stack is and what is on it.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "heap/trails.h"
#include "stack_table.h"
#include "under_valgrind.h"
#include "unwind.h"
#include "waiting.h"

#if ARCH_HAVE_TABLES && !ARCH_FRAME_RECORD

#define MAX    STACK_FRAMES_MAX
#define RATE   524288
#define STACKS 2000 /* more than there are places */

static atomic_bool wrong;

struct call {
	struct unwind_regs regs;
	uintptr_t          pcs[MAX];
	unsigned           n;
};

#define CALL_HERE(c)                                                \
	struct call c = { .regs = UNWIND_REGS_HERE };               \
	int         cut_ = 0;                                       \
	(c).n = unwind_capture(&(c).regs, (c).pcs, MAX, &cut_)

static void
add_at(const struct call *c, uint32_t labels, uint64_t size, uint64_t rate, uint32_t site)
{
	struct heap_block b = { .size = size, .weight = size + rate, .site = site };

	heap_trails_add(&c->regs, c->pcs, c->n, labels, rate, &b);
}

static void
add(const struct call *c, uint32_t labels, uint64_t size, uint32_t site)
{
	add_at(c, labels, size, RATE, site);
}

/* The site; its weight must be with it. */
static uint32_t
find_at(const struct call *c, uint32_t labels, uint64_t size, uint64_t rate)
{
	struct heap_block b = { .size = size };
	bool              found = heap_trails_find(&c->regs, labels, rate, &b);

	if (found != (b.site != 0) || (found && b.weight != size + rate))
		wrong = true;
	return b.site;
}

static uint32_t
find(const struct call *c, uint32_t labels, uint64_t size)
{
	return find_at(c, labels, size, RATE);
}

static void
a_stack_is_found_with_its_labels_and_its_size(void **state)
{
	CALL_HERE(c);

	(void)state;
	assert_int_equal(find(&c, 0, 77), 0);
	add(&c, 0, 77, 5);
	assert_int_equal(find(&c, 0, 77), 5);
	assert_int_equal(find(&c, 3, 77), 0);
	assert_int_equal(find(&c, 0, 78), 0);
	add(&c, 3, 77, 6);
	assert_int_equal(find(&c, 3, 77), 6);
	assert_int_equal(find(&c, 0, 77), 5);
}

static void
another_pc_and_another_part_of_the_stack_are_not_taken_for_it(void **state)
{
	CALL_HERE(c);

	(void)state;
	add(&c, 0, 177, 7);
	c.regs.pc++;
	assert_int_equal(find(&c, 0, 177), 0);
	c.regs.pc--;
	c.regs.sp += 16;
	assert_int_equal(find(&c, 0, 177), 0);
	c.regs.sp -= 16;
	assert_int_equal(find(&c, 0, 177), 7);
}

/* A rate that has changed does not come back soon: what was kept at the old one makes room at once. */
static void
another_rate_has_weights_of_its_own(void **state)
{
	CALL_HERE(c);

	(void)state;
	for (uint64_t rate = RATE; rate < RATE + 10; rate++) {
		assert_int_equal(find_at(&c, 0, 677, rate), 0);
		add_at(&c, 0, 677, rate, 13);
		assert_int_equal(find_at(&c, 0, 677, rate), 13);
	}
	assert_false(wrong);
}

static volatile uint32_t nothing;

#define TAIL nothing /* so that the call before is none that returns to the caller's caller */

static __attribute__((noinline)) uint32_t
find_or_add(uint64_t size, uint32_t site)
{
	CALL_HERE(c);
	uint32_t found = find(&c, 0, size);

	if (!found)
		add(&c, 0, size, site);
	return found;
}

static void *
in_a_thread(void *site)
{
	return (void *)(uintptr_t)(find_or_add(277, (uint32_t)(uintptr_t)site) | TAIL);
}

static uint32_t
found_in_a_thread(uint32_t site)
{
	pthread_t t;
	void     *found = NULL;

	assert_int_equal(pthread_create(&t, NULL, in_a_thread, (void *)(uintptr_t)site), 0);
	assert_int_equal(pthread_join(t, &found), 0);
	return (uint32_t)(uintptr_t)found;
}

static void
what_one_thread_has_found_another_one_knows(void **state)
{
	(void)state;
	assert_int_equal(found_in_a_thread(8), 0);
	assert_int_equal(found_in_a_thread(9), 8);
}

/* Each asked for as often as all others.  They differ in one thing or in several. */
static void
many_stacks_keep_each_its_site_or_none(void **state)
{
	unsigned found = 0;
	CALL_HERE(c);
	struct call next = c; /* one byte further on: the same words are there */

	(void)state;
	next.regs.pc++;
	next.pcs[0]++;
	for (int round = 0; round < 20; round++)
		for (uint32_t i = 1; i <= STACKS; i++) {
			const struct call *one = i % 2 ? &c : &next;
			uint32_t           labels = i / 2 % 32, size = 1000 + i / 64;
			uint32_t           site = find(one, labels, size);

			assert_true(site == 0 || site == i);
			found += site != 0;
			if (!site)
				add(one, labels, size, i);
		}
	assert_in_range(found, 20 * 256, 20 * 512); /* half of the places, all the time */
}

static void
who_is_asked_for_stays_and_who_is_not_makes_room(void **state)
{
	CALL_HERE(c);

	(void)state;
	while (!find(&c, 0, 377)) /* the test before has left no place free */
		add(&c, 0, 377, 10);
	for (uint32_t size = 10000; size < 30000; size++) {
		assert_int_equal(find(&c, 0, 377), 10);
		add(&c, 0, size, size);
	}
	for (uint32_t size = 30000; size < 60000; size++)
		add(&c, 0, size, size);
	assert_int_equal(find(&c, 0, 377), 0); /* nobody has asked for it */
}

/* Allocates for others: its own place is one, and their stacks are two. */
static __attribute__((noinline)) uint32_t
wrapper(uint32_t site)
{
	return find_or_add(477, site) | TAIL;
}

static __attribute__((noinline)) uint32_t
one(void)
{
	return wrapper(11) | TAIL;
}

static __attribute__((noinline)) uint32_t
other(void)
{
	return wrapper(12) | TAIL;
}

static void
two_callers_of_a_function_are_both_found(void **state)
{
	unsigned found[2] = { 0, 0 };

	(void)state;
	for (volatile int i = 0; i < 2000; i++) { /* the test before has left no place free */
		found[0] += one() == 11;
		found[1] += other() == 12;
	}
	assert_in_range(found[0], 1900, 2000);
	assert_in_range(found[1], 1900, 2000);
}

/* ---- several threads, few places ---- */

static atomic_bool stop;
static atomic_long looked;

static uint32_t
any_size(unsigned *seed)
{
	return 50000 + (uint32_t)rand_r(seed) % STACKS;
}

static void *
writes_on(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	CALL_HERE(c);

	while (!stop) {
		uint32_t size = any_size(&seed);

		add(&c, 0, size, size);
	}
	return NULL;
}

static void *
looks_on(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	CALL_HERE(c);

	while (!stop) {
		uint32_t size = any_size(&seed), site = find(&c, 0, size);

		if (site && site != size)
			wrong = true;
		looked += site != 0;
	}
	return NULL;
}

static void
nobody_finds_what_another_thread_has_half_written(void **state)
{
	pthread_t t[4];

	(void)state;
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, i % 2 ? writes_on : looks_on, (void *)i), 0);
	WAIT_FOR(looked > 300000 || wrong);
	stop = true;
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_false(wrong);
}

static int
set_up(void **state)
{
	(void)state;
	if (unwind_start(UNWIND_TABLES) < 0)
		return -1;
	WAIT_FOR_S(unwind_roots_known(), 60);
	CALL_HERE(c); /* the end of this stack is known from then on */
	return c.n > 0 ? 0 : -1;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_is_found_with_its_labels_and_its_size),
		cmocka_unit_test(another_pc_and_another_part_of_the_stack_are_not_taken_for_it),
		cmocka_unit_test(another_rate_has_weights_of_its_own),
		cmocka_unit_test(what_one_thread_has_found_another_one_knows),
		cmocka_unit_test(many_stacks_keep_each_its_site_or_none),
		cmocka_unit_test(who_is_asked_for_stays_and_who_is_not_makes_room),
		cmocka_unit_test(two_callers_of_a_function_are_both_found),
		cmocka_unit_test(nobody_finds_what_another_thread_has_half_written),
	};

	if (under_memcheck) {
		printf("1..0 # SKIP there are no trails under valgrind\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, set_up, NULL);
}

#else

int
main(void)
{
	printf("1..0 # SKIP there are no trails on this processor\n");
	return 0;
}

#endif
