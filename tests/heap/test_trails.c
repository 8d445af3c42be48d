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
#include <stdio.h>

#include "heap/trails.h"
#include "stack_table.h"
#include "unwind.h"
#include "waiting.h"

#if ARCH_HAVE_TABLES

#define MAX    STACK_FRAMES_MAX
#define STACKS 2000 /* more than there are places */

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
add(const struct call *c, uint32_t labels, uint64_t size, uint32_t site)
{
	heap_trails_add(&c->regs, c->pcs, c->n, labels, size, site);
}

static void
a_stack_is_found_with_its_labels_and_its_size(void **state)
{
	CALL_HERE(c);

	(void)state;
	assert_int_equal(heap_trails_find(&c.regs, 0, 77), 0);
	add(&c, 0, 77, 5);
	assert_int_equal(heap_trails_find(&c.regs, 0, 77), 5);
	assert_int_equal(heap_trails_find(&c.regs, 3, 77), 0);
	assert_int_equal(heap_trails_find(&c.regs, 0, 78), 0);
	add(&c, 3, 77, 6);
	assert_int_equal(heap_trails_find(&c.regs, 3, 77), 6);
	assert_int_equal(heap_trails_find(&c.regs, 0, 77), 5);
}

static void
another_pc_and_another_part_of_the_stack_are_not_taken_for_it(void **state)
{
	CALL_HERE(c);

	(void)state;
	add(&c, 0, 177, 7);
	c.regs.pc++;
	assert_int_equal(heap_trails_find(&c.regs, 0, 177), 0);
	c.regs.pc--;
	c.regs.sp += 16;
	assert_int_equal(heap_trails_find(&c.regs, 0, 177), 0);
	c.regs.sp -= 16;
	assert_int_equal(heap_trails_find(&c.regs, 0, 177), 7);
}

static __attribute__((noinline)) uint32_t
find_or_add(uint32_t site)
{
	CALL_HERE(c);
	uint32_t found = heap_trails_find(&c.regs, 0, 277);

	if (!found)
		add(&c, 0, 277, site);
	return found;
}

static void *
in_a_thread(void *site)
{
	return (void *)(uintptr_t)find_or_add((uint32_t)(uintptr_t)site);
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

/* The first of them finds out where stacks of threads end, and has no trail. */
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
			uint32_t           site = heap_trails_find(&one->regs, labels, size);

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
	while (!heap_trails_find(&c.regs, 0, 377)) /* the test before has left no place free */
		add(&c, 0, 377, 10);
	for (uint32_t size = 10000; size < 30000; size++) {
		assert_int_equal(heap_trails_find(&c.regs, 0, 377), 10);
		add(&c, 0, size, size);
	}
	for (uint32_t size = 30000; size < 60000; size++)
		add(&c, 0, size, size);
	assert_int_equal(heap_trails_find(&c.regs, 0, 377), 0); /* nobody has asked for it */
}

/* ---- several threads, few places ---- */

static atomic_bool stop, wrong;
static atomic_long found_at_once;

static void *
adds_and_finds(void *arg)
{
	CALL_HERE(c);

	(void)arg;
	for (uint32_t i = 0; !stop; i++) {
		uint32_t size = 50000 + i * 7919 % STACKS, site = heap_trails_find(&c.regs, 0, size);

		if (site && site != size)
			wrong = true;
		found_at_once += site != 0;
		if (!site)
			add(&c, 0, size, size);
	}
	return NULL;
}

static void
threads_that_write_the_same_places_find_nothing_wrong(void **state)
{
	pthread_t t[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, adds_and_finds, NULL), 0);
	WAIT_FOR(found_at_once > 100000 || wrong);
	stop = true;
	for (int i = 0; i < 3; i++)
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
		cmocka_unit_test(what_one_thread_has_found_another_one_knows),
		cmocka_unit_test(many_stacks_keep_each_its_site_or_none),
		cmocka_unit_test(who_is_asked_for_stays_and_who_is_not_makes_room),
		cmocka_unit_test(threads_that_write_the_same_places_find_nothing_wrong),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}

#else

int
main(void)
{
	printf("1..0 # SKIP there are no tables for this processor\n");
	return 0;
}

#endif
