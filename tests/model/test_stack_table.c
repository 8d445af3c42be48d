/*
 * test_stack_table.c - every stack once: counts, reuse, limits, forks, and adds
 * that interrupt adds.
 */
#include <config.h>

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "stack_table.h"
#include "waiting.h"

#define LIMIT ((size_t)32 << 20)

static unsigned
stack_make(uintptr_t *pcs, uintptr_t seed, unsigned depth)
{
	unsigned i;

	for (i = 0; i < depth; i++)
		pcs[i] = 0x400000 + seed * 16 + i * 4096;
	return depth;
}

static uint32_t
add(uintptr_t seed, unsigned depth)
{
	uintptr_t pcs[STACK_FRAMES_MAX * 2];

	return stack_table_add(pcs, stack_make(pcs, seed, depth));
}

static void
equal_stacks_get_one_id_and_their_pcs_come_back(void **state)
{
	uintptr_t        pcs[20];
	const uintptr_t *got;
	unsigned         count;
	uint32_t         a, b, c;

	(void)state;
	stack_make(pcs, 5, 20);
	a = stack_table_add(pcs, 20);
	b = stack_table_add(pcs, 20);
	c = stack_table_add(pcs, 19);
	assert_int_equal(a, b);
	assert_int_not_equal(a, c);
	got = stack_table_pcs(a, &count);
	assert_int_equal(count, 20);
	assert_memory_equal(got, pcs, sizeof(pcs));
	stack_table_ref(a);
	stack_table_unref(a);
	stack_table_unref(a);
	got = stack_table_pcs(a, &count);
	assert_memory_equal(got, pcs, sizeof(pcs));
	stack_table_unref(a);
	stack_table_unref(c);
	assert_int_equal(stack_table_bytes(), 0);
}

static void
words_of_our_own_take_no_memory(void **state)
{
	uintptr_t        pc;
	const uintptr_t *got;
	unsigned         count;

	(void)state;
	for (pc = 1; pc < STACK_PSEUDO_MAX; pc++) {
		uint32_t id = stack_table_add(&pc, 1);

		got = stack_table_pcs(id, &count);
		assert_int_equal(count, 1);
		assert_int_equal(got[0], pc);
		assert_non_null(stack_pseudo_name(pc));
		stack_table_ref(id);
		stack_table_unref(id);
		stack_table_unref(id);
	}
	assert_null(stack_pseudo_name(STACK_PSEUDO_MAX));
	assert_null(stack_pseudo_name(0));
	assert_int_not_equal(stack_table_add(&pc, 0), 0);
	assert_int_equal(stack_table_bytes(), 0);
}

static void
a_hundred_thousand_stacks_fit_and_all_memory_goes_back(void **state)
{
	enum { N = 100000 };
	uint32_t *ids = calloc(N, sizeof(*ids));
	uintptr_t pcs[30];
	unsigned  i, count;

	(void)state;
	for (i = 0; i < N; i++) {
		ids[i] = add(i, 5 + i % 25);
		assert_true(ids[i] >= STACK_PSEUDO_MAX);
	}
	for (i = 0; i < N; i++) {
		const uintptr_t *got = stack_table_pcs(ids[i], &count);

		assert_int_equal(count, stack_make(pcs, i, 5 + i % 25));
		assert_memory_equal(got, pcs, count * sizeof(pcs[0]));
	}
	assert_true(stack_table_bytes() < LIMIT);
	for (i = 0; i < N; i++)
		stack_table_unref(ids[i]);
	assert_int_equal(stack_table_bytes(), 0);
	free(ids);
}

/* Which is what lets 32 MiB hold a hundred thousand. */
static void
a_stack_of_thirty_frames_takes_at_most_300_bytes_index_included(void **state)
{
	enum { N = 100000 };
	uint32_t *ids = calloc(N, sizeof(*ids));

	(void)state;
	assert_non_null(ids);
	for (uintptr_t i = 0; i < N; i++) {
		ids[i] = add(i, 30);
		assert_true(ids[i] >= STACK_PSEUDO_MAX);
	}
	assert_true(stack_table_bytes() / N <= 300);
	for (unsigned i = 0; i < N; i++)
		stack_table_unref(ids[i]);
	assert_int_equal(stack_table_bytes(), 0);
	free(ids);
}

static void
freed_entries_are_used_again(void **state)
{
	uint32_t keep = add(1, 3);
	size_t   bytes = 0;
	unsigned round, i;
	uint32_t ids[1000];

	(void)state;
	for (round = 0; round < 50; round++) {
		for (i = 0; i < 1000; i++)
			ids[i] = add(1000 + round * 1000 + i, 1 + (i * 7 + round) % 60);
		if (round == 5)
			bytes = stack_table_bytes();
		for (i = 0; i < 1000; i++)
			stack_table_unref(ids[(i * 37) % 1000]);
	}
	assert_true(stack_table_bytes() <= bytes + (512 << 10));
	stack_table_unref(keep);
	assert_int_equal(stack_table_bytes(), 0);
}

static void
a_full_table_says_so_and_goes_on_when_there_is_room(void **state)
{
	enum { N = 20000 };
	static uint32_t  ids[N];
	const uintptr_t *pcs;
	unsigned         i, full = 0, count;
	uint32_t         late;

	(void)state;
	stack_table_set_limit(1 << 20);
	for (i = 0; i < N; i++) {
		ids[i] = add(i, 20);
		pcs = stack_table_pcs(ids[i], &count);
		full += count == 1 && pcs[0] == STACK_PSEUDO_FULL;
	}
	assert_in_range(full, 1, N - 1);
	assert_true(stack_table_bytes() <= 1 << 20);
	assert_int_equal(add(0, 20), ids[0]); /* what is known is still found */
	stack_table_unref(ids[0]);
	stack_table_set_limit(LIMIT);
	late = add(N, 20);
	assert_true(late >= STACK_PSEUDO_MAX);
	stack_table_unref(late);
	for (i = 0; i < N; i++)
		stack_table_unref(ids[i]);
	assert_int_equal(stack_table_bytes(), 0);
}

static void
a_limit_of_nothing_is_full_at_once(void **state)
{
	(void)state;
	stack_table_set_limit(0);
	assert_int_equal(add(1, 5), STACK_PSEUDO_FULL);
	stack_table_set_limit(LIMIT);
	assert_int_equal(stack_table_bytes(), 0);
}

static void *
churn(void *arg)
{
	uintptr_t seed = (uintptr_t)arg;
	uint32_t  ids[64] = { 0 };
	unsigned  i, slot;

	for (i = 0; i < 40000; i++) {
		slot = (i * 31 + (unsigned)seed) % 64;
		stack_table_unref(ids[slot]);
		ids[slot] = add((i * 17 + seed) % 200, 1 + (i + (unsigned)seed) % 200 % 30);
	}
	for (i = 0; i < 64; i++)
		stack_table_unref(ids[i]);
	return NULL;
}

static void
threads_add_and_drop_the_same_stacks(void **state)
{
	pthread_t threads[4];
	unsigned  i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)i), 0);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(stack_table_bytes(), 0);
}

#define ALARMS 2000

static const struct itimerval never;
static atomic_uint            handler_runs;
static atomic_uint            handler_lost;

static void
on_alarm(int signal_number)
{
	uint32_t id = add(7, 9);

	(void)signal_number;
	handler_lost += id == STACK_PSEUDO_LOST;
	stack_table_unref(id);
	if (++handler_runs == ALARMS)
		setitimer(ITIMER_REAL, &never, NULL); /* here: where this is slow, nothing else may get on */
}

static void
interrupt(void *arg)
{
	(void)arg;
	raise(SIGALRM);
}

static void
an_add_that_interrupts_who_holds_the_lock_does_not_wait(void **state)
{
	(void)state;
	signal(SIGALRM, on_alarm);
	handler_runs = handler_lost = 0;
	assert_true(stack_table_exclusively(interrupt, NULL));
	assert_int_equal(handler_runs, 1);
	assert_int_equal(handler_lost, 1);
	interrupt(NULL);
	signal(SIGALRM, SIG_IGN);
	assert_int_equal(handler_runs, 2);
	assert_int_equal(handler_lost, 1);
	assert_int_equal(stack_table_bytes(), 0);
}

/* How many adds are interrupted is chance: an emulator delivers signals at few places. */
static void
adds_that_interrupt_adds_leave_nothing(void **state)
{
	const struct itimerval often = { { 0, 50 }, { 0, 50 } };

	(void)state;
	handler_runs = 0;
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	for (uintptr_t i = 0; handler_runs < ALARMS; i++)
		stack_table_unref(add(i % 1000, 40));
	signal(SIGALRM, SIG_IGN); /* one may be on its way */
	assert_int_equal(stack_table_bytes(), 0);
}

static atomic_bool stop;

static void *
churn_until_stopped(void *arg)
{
	uintptr_t i;

	for (i = 0; !stop; i++)
		stack_table_unref(add((uintptr_t)arg * 1000 + i % 500, 30));
	return NULL;
}

static void
a_forked_child_finds_the_table_whole(void **state)
{
	pthread_t thread;
	uint32_t  mine = add(99999, 10), id;
	unsigned  i, count;
	int       status;
	pid_t     pid;

	(void)state;
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, churn_until_stopped, (void *)1), 0);
	for (i = 0; i < 100; i++) {
		pid = fork();
		if (pid == 0) {
			signal(SIGALRM, SIG_DFL);
			alarm(600);
			id = add(99999, 10);
			if (id != mine)
				_exit(1);
			id = add(88888, 11);
			if (id < STACK_PSEUDO_MAX || (stack_table_pcs(id, &count), count != 11))
				_exit(2);
			stack_table_unref(id);
			_exit(0);
		}
		assert_true(pid > 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	stop = true;
	pthread_join(thread, NULL);
	stack_table_unref(mine);
	assert_int_equal(stack_table_bytes(), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_stacks_get_one_id_and_their_pcs_come_back),
		cmocka_unit_test(words_of_our_own_take_no_memory),
		cmocka_unit_test(a_hundred_thousand_stacks_fit_and_all_memory_goes_back),
		cmocka_unit_test(a_stack_of_thirty_frames_takes_at_most_300_bytes_index_included),
		cmocka_unit_test(freed_entries_are_used_again),
		cmocka_unit_test(a_full_table_says_so_and_goes_on_when_there_is_room),
		cmocka_unit_test(a_limit_of_nothing_is_full_at_once),
		cmocka_unit_test(threads_add_and_drop_the_same_stacks),
		cmocka_unit_test(an_add_that_interrupts_who_holds_the_lock_does_not_wait),
		cmocka_unit_test(adds_that_interrupt_adds_leave_nothing),
		cmocka_unit_test(a_forked_child_finds_the_table_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
