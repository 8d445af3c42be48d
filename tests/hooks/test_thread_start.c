/*
 * test_thread_start.c - threads made through the hooks are the same threads.
 */
#include <config.h>

#include <errno.h>
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
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include <cmocka.h>

#include "heap/bind.h"
#include "abi.h"
#include "collector.h"
#include "thread_events.h"
#include "our_thread.h"
#include "stack_table.h"
#include "threadcreate/threadcreate.h"
#include "waits/waits.h"

static uint64_t
seen(void)
{
	return component_hooks.calls[HOOKS_pthread_create] + component_hooks.calls[HOOKS_thrd_create];
}

static void *
give_back(void *arg)
{
	return arg;
}

static void *
leave_by_exit(void *arg)
{
	pthread_exit(arg);
}

static void *
wait_to_be_cancelled(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

static void
results_come_back_by_return_and_by_exit(void **state)
{
	pthread_t t;
	void     *result;
	uint64_t  before = seen();

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, give_back, (void *)42), 0);
	assert_int_equal(pthread_join(t, &result), 0);
	assert_int_equal((uintptr_t)result, 42);
	assert_int_equal(pthread_create(&t, NULL, leave_by_exit, (void *)43), 0);
	assert_int_equal(pthread_join(t, &result), 0);
	assert_int_equal((uintptr_t)result, 43);
	assert_int_equal(seen() - before, 2);
}

static void
a_cancelled_thread_is_cancelled(void **state)
{
	pthread_t t;
	void     *result;

	(void)state;
	for (int i = 0; i < 600; i++) { /* some before they run: no place is lost */
		assert_int_equal(pthread_create(&t, NULL, wait_to_be_cancelled, NULL), 0);
		assert_int_equal(pthread_cancel(t), 0);
		assert_int_equal(pthread_join(t, &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
	}
	assert_int_equal(thread_events_missed(), 0);
}

static int
c11_negative(void *arg)
{
	(void)arg;
	return -7;
}

static int
c11_exit(void *arg)
{
	(void)arg;
	thrd_exit(-8);
}

static void
c11_threads_return_their_int(void **state)
{
	thrd_t   t;
	int      result;
	uint64_t before = seen();

	(void)state;
	assert_int_equal(thrd_create(&t, c11_negative, NULL), thrd_success);
	assert_int_equal(thrd_join(t, &result), thrd_success);
	assert_int_equal(result, -7);
	assert_int_equal(thrd_create(&t, c11_exit, NULL), thrd_success);
	assert_int_equal(thrd_join(t, &result), thrd_success);
	assert_int_equal(result, -8);
	assert_int_equal(seen() - before, 2);
}

static void
a_failed_creation_fails_and_keeps_nothing(void **state)
{
	pthread_attr_t attr;
	pthread_t      t;

	(void)state;
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, (size_t)1 << 46), 0);
	for (int i = 0; i < 2000; i++)
		assert_int_not_equal(pthread_create(&t, &attr, give_back, NULL), 0);
	pthread_attr_destroy(&attr);
	assert_int_equal(thread_events_missed(), 0);
}

static void *
say_stack(void *arg)
{
	pthread_attr_t attr;
	int            detached;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstacksize(&attr, arg);
	pthread_attr_getdetachstate(&attr, &detached);
	pthread_attr_destroy(&attr);
	return (void *)(uintptr_t)detached;
}

static void
attributes_are_kept_and_the_smallest_stack_is_enough(void **state)
{
	pthread_attr_t attr;
	pthread_t      t;
	size_t         got = 0, least = (size_t)sysconf(_SC_THREAD_STACK_MIN);
	void          *result;

	(void)state;
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, least), 0);
	assert_int_equal(pthread_create(&t, &attr, give_back, (void *)5), 0);
	assert_int_equal(pthread_join(t, &result), 0);
	assert_int_equal((uintptr_t)result, 5);
	assert_int_equal(pthread_attr_setstacksize(&attr, 1 << 20), 0);
	assert_int_equal(pthread_create(&t, &attr, say_stack, &got), 0);
	assert_int_equal(pthread_join(t, &result), 0);
	assert_in_range(got, (1 << 20) - 65536, (1 << 20) + 65536);
	pthread_attr_destroy(&attr);
}

static _Atomic int ran;

static void *
count(void *arg)
{
	(void)arg;
	ran++;
	return NULL;
}

static void
detached_threads_run(void **state)
{
	pthread_attr_t attr;
	pthread_t      t;

	(void)state;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < 100; i++)
		while (pthread_create(&t, &attr, count, NULL) == EAGAIN)
			sched_yield();
	while (ran < 100)
		sched_yield();
	pthread_attr_destroy(&attr);
}

static void
our_own_threads_are_left_alone(void **state)
{
	uint64_t  before = seen();
	pthread_t t;

	(void)state;
	assert_int_equal(our_thread_start("component-test", give_back, NULL, &t), 0);
	pthread_join(t, NULL);
	assert_int_equal(seen(), before);
}

static void
nobody_watching_nothing_is_done(void **state)
{
	uint64_t  before = seen();
	pthread_t t;

	(void)state;
	thread_events_watch(THREAD_EVENTS_CPU, false);
	assert_int_equal(pthread_create(&t, NULL, give_back, NULL), 0);
	pthread_join(t, NULL);
	assert_int_equal(seen(), before);
	thread_events_watch(THREAD_EVENTS_CPU, true);
}

/* ---- threadcreate ---- */

#define SITE_BYTES 512
#define SITE __attribute__((noinline, aligned(SITE_BYTES)))

/* How many threads the profile says were made in this function. */
static int64_t
made_in(const void *function)
{
	struct product   made;
	struct profile   p;
	const uintptr_t *pcs;
	unsigned         n;
	int64_t          sum = 0;

	assert_int_equal(collect_threadcreate.snapshot(&collect_threadcreate, &(struct collect_params){ 0 }, &made), 0);
	p = made.profile;
	assert_int_equal(p.type_count, 1);
	for (size_t i = 0; i < p.count; i++) {
		pcs = stack_table_pcs(p.samples[i].stack, &n);
		if (n > 0 && pcs[0] - (uintptr_t)function < SITE_BYTES)
			sum += p.samples[i].values[0];
	}
	profile_release(&p);
	return sum;
}

static void *
tell_creator(void *arg)
{
	atomic_store((_Atomic uint32_t *)arg, threadcreate_creator(gettid()));
	return (void *)(uintptr_t)gettid();
}

SITE static pid_t
make_one(uint32_t *ret_creator)
{
	_Atomic uint32_t creator = 0;
	pthread_t        t;
	void            *tid;

	assert_int_equal(pthread_create(&t, NULL, tell_creator, &creator), 0);
	assert_int_equal(pthread_join(t, &tid), 0);
	*ret_creator = atomic_load(&creator);
	return (pid_t)(uintptr_t)tid;
}

SITE static void
make_one_c11(void)
{
	thrd_t t;

	assert_int_equal(thrd_create(&t, c11_negative, NULL), thrd_success);
	assert_int_equal(thrd_join(t, NULL), thrd_success);
}

SITE static void
fail_to_make_one(void)
{
	pthread_attr_t attr;
	pthread_t      t;

	assert_int_equal(pthread_attr_init(&attr), 0);
	assert_int_equal(pthread_attr_setstacksize(&attr, (size_t)1 << 46), 0);
	assert_int_not_equal(pthread_create(&t, &attr, give_back, NULL), 0);
	pthread_attr_destroy(&attr);
}

static void
the_stacks_that_created_threads_are_counted(void **state)
{
	uint32_t creator;
	size_t   before;

	(void)state;
	assert_int_equal(threadcreate_start(), 0);
	before = collect_threadcreate.count(&collect_threadcreate);
	for (int i = 0; i < 50; i++)
		make_one(&creator);
	make_one_c11();
	fail_to_make_one();
	assert_int_equal(made_in((const void *)make_one), 50);
	assert_int_equal(made_in((const void *)make_one_c11), 1);
	assert_int_equal(made_in((const void *)fail_to_make_one), 0);
	assert_int_equal(collect_threadcreate.count(&collect_threadcreate) - before, 51);
	threadcreate_stop();
	make_one(&creator);
	assert_int_equal(made_in((const void *)make_one), 50);
}

static void
a_running_thread_names_its_creator_and_an_ended_one_does_not(void **state)
{
	const uintptr_t *pcs;
	uint32_t         creator;
	unsigned         n;
	pid_t            tid;

	(void)state;
	assert_int_equal(threadcreate_start(), 0);
	tid = make_one(&creator);
	assert_int_not_equal(creator, 0);
	pcs = stack_table_pcs(creator, &n);
	assert_true(n >= 1 && pcs[0] - (uintptr_t)make_one < SITE_BYTES);
	assert_int_equal(threadcreate_creator(tid), 0);
	assert_int_equal(threadcreate_creator(getpid()), 0);
	threadcreate_stop();
	tid = make_one(&creator);
	assert_int_equal(creator, 0);
}

static void
a_child_begins_at_zero(void **state)
{
	uint32_t creator;
	pid_t    child;
	int      status;

	(void)state;
	assert_int_equal(threadcreate_start(), 0);
	make_one(&creator);
	child = fork();
	if (child == 0) {
		threadcreate_forked();
		if (collect_threadcreate.count(&collect_threadcreate) != 0 || threadcreate_start() != 0)
			_exit(1);
		make_one(&creator);
		_exit(made_in((const void *)make_one) == 1 && creator ? 0 : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	threadcreate_stop();
}

/* In a child, as it decides once. */
static bool
heap_refuses_in_child(const char *status)
{
	pid_t child = fork();
	int   exited;

	if (child == 0)
		_exit(!heap_bind() && strstr(heap_bind_status(), status) ? 0 : 1);
	assert_int_equal(waitpid(child, &exited, 0), child);
	return exited == 0;
}

/* The program was linked with hooks of before, the library is of today. */
static void
hooks_of_before_lack_only_what_came_later(void **state)
{
	uint32_t size = component_hooks.size;

	(void)state;
	component_hooks.size = offsetof(struct component_hooks, wait_state);
	assert_string_equal(thread_events_status(), "");
	assert_non_null(strstr(waits_status(), "of another version"));
	component_hooks.size = offsetof(struct component_hooks, thread_made);
	assert_non_null(strstr(thread_events_status(), "of another version"));
	assert_true(heap_refuses_in_child("of another version"));
	component_hooks.size = size;
	assert_string_equal(thread_events_status(), "");
	assert_string_equal(waits_status(), "");
}

static int
set_up(void **state)
{
	(void)state;
	thread_events_watch(THREAD_EVENTS_CPU, true);
	return component_hooks.thread_state == HOOKS_ON ? 0 : -1;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_come_back_by_return_and_by_exit),
		cmocka_unit_test(a_cancelled_thread_is_cancelled),
		cmocka_unit_test(c11_threads_return_their_int),
		cmocka_unit_test(a_failed_creation_fails_and_keeps_nothing),
		cmocka_unit_test(attributes_are_kept_and_the_smallest_stack_is_enough),
		cmocka_unit_test(detached_threads_run),
		cmocka_unit_test(our_own_threads_are_left_alone),
		cmocka_unit_test(nobody_watching_nothing_is_done),
		cmocka_unit_test(the_stacks_that_created_threads_are_counted),
		cmocka_unit_test(a_running_thread_names_its_creator_and_an_ended_one_does_not),
		cmocka_unit_test(a_child_begins_at_zero),
		cmocka_unit_test(hooks_of_before_lack_only_what_came_later),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
