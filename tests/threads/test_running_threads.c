/*
 * test_running_threads.c - threads that run while they are dumped: what is said of them, and how long that may take.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "dump/quiet.h"
#include "dump/threads.h"
#include "our_thread.h"
#include "stack_table.h"
#include "unwind.h"
#include "waiting.h"

enum { OWN = 6 };

static atomic_bool stop;
static atomic_int  runner_tid;
static atomic_uint pauses;
static atomic_llong late_ns, later_ns; /* how late the clock of this program is, and how much later at each look */

/* The one that the library calls, too. */
int
nanosleep(const struct timespec *time, struct timespec *left)
{
	atomic_fetch_add(&pauses, 1);
	return (int)syscall(SYS_nanosleep, time, left);
}

/* And this one. */
int
clock_gettime(clockid_t clock, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, clock, ret);

	if (r == 0 && clock == CLOCK_MONOTONIC)
		ret->tv_sec += (atomic_fetch_add(&late_ns, later_ns) + later_ns) / 1000000000;
	return r;
}

static void *
run(void *arg)
{
	runner_tid = (int)syscall(SYS_gettid);
	while (!stop)
		;
	return arg;
}

static void
one_that_runs_is_in_no_call_though_it_was_at_an_earlier_look(void **state)
{
	struct dump_thread t = { .syscall = SYS_read, .futex = { .word = 8 } };
	uintptr_t          pcs[STACK_FRAMES_MAX];
	struct quiet       q;
	pthread_t          runner;

	(void)state;
	stop = false;
	assert_int_equal(pthread_create(&runner, NULL, run, NULL), 0);
	WAIT_FOR(runner_tid);
	t.tid = runner_tid;
	assert_int_equal(quiet_open(&q), 0);
	quiet_read(&q, &t, NULL, pcs, STACK_FRAMES_MAX);
	quiet_close(&q);
	stop = true;
	pthread_join(runner, NULL);
	assert_int_equal(t.syscall, DUMP_NO_SYSCALL);
	assert_int_equal(t.futex.word, 0);
}

static void
those_of_the_library_are_waited_for_together(void **state)
{
	pthread_t   runners[OWN];
	struct dump d;
	unsigned    waited, silent;

	(void)state;
	stop = false;
	for (int i = 0; i < OWN; i++)
		assert_int_equal(our_thread_start("component-test", run, NULL, &runners[i]), 0);
	WAIT_FOR(our_threads_named() == our_threads_made());
	pauses = 0;
	assert_int_equal(threads_dump_of(&d, THREADS_OWN), 0);
	waited = pauses;
	silent = d.silent;
	stop = true;
	for (int i = 0; i < OWN; i++)
		pthread_join(runners[i], NULL);
	dump_release(&d);
	assert_int_equal(silent, OWN);
	assert_in_range(waited, 1, 600); /* of a millisecond; 500 for each of them would be 3000 */
}

/* As where the process, or its machine, is stopped just then for longer than answers are waited for. */
static void
a_process_that_is_stopped_meanwhile_has_all_answers(void **state)
{
	struct dump d;
	pthread_t   runner;
	unsigned    signalled, silent;

	(void)state;
	stop = false;
	runner_tid = 0;
	assert_int_equal(pthread_create(&runner, NULL, run, NULL), 0);
	WAIT_FOR(runner_tid);
	later_ns = 5000000000;
	assert_int_equal(threads_dump_of(&d, THREADS_NAMES), 0);
	later_ns = 0;
	signalled = d.signalled;
	silent = d.silent;
	stop = true;
	pthread_join(runner, NULL);
	dump_release(&d);
	assert_int_equal(silent, 0);
	assert_int_equal(signalled, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_runs_is_in_no_call_though_it_was_at_an_earlier_look),
		cmocka_unit_test(those_of_the_library_are_waited_for_together),
		cmocka_unit_test(a_process_that_is_stopped_meanwhile_has_all_answers),
	};

	unwind_start(UNWIND_AUTO);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
