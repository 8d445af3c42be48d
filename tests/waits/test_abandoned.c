/*
 * test_abandoned.c - waits that are left otherwise than by return: by siglongjmp(), by
 * the end of the thread; and what an unlock looks at when nobody waits.
 */
#include <config.h>

#include <signal.h>

#include "skip.h"
#include "events/ring.h"
#include "fixture.h"
#include "waits/waiters.h"

#define DEADLINE_NS 60000000000LL

/* ---- siglongjmp() ---- */

static __thread sigjmp_buf out;

static void
leave(int signal)
{
	(void)signal;
	siglongjmp(out, 1);
}

static void *
leaves_then_exits(void *arg)
{
	if (sigsetjmp(out, 1) == 0) {
		atomic_store(&waiter_tid, gettid());
		wait_for((enum kind)(uintptr_t)arg);
		return NULL;
	}
	pthread_exit(&flag);
}

static void *
leaves_then_is_cancelled(void *arg)
{
	if (sigsetjmp(out, 1) == 0) {
		atomic_store(&waiter_tid, gettid());
		wait_for((enum kind)(uintptr_t)arg);
		return NULL;
	}
	atomic_store(&flag, 1);
	for (;;)
		pause();
}

static void
leave_and_end(enum kind kind, bool cancel)
{
	pthread_t t, unused;
	void     *r;

	prepare(kind, &unused);
	assert_int_equal(pthread_create(&t, NULL, cancel ? leaves_then_is_cancelled : leaves_then_exits,
				 (void *)(uintptr_t)kind), 0);
	until_waiting(kind);
	forget();
	assert_int_equal(pthread_kill(t, SIGUSR1), 0);
	while (cancel && !atomic_load(&flag))
		sched_yield();
	if (cancel)
		assert_int_equal(pthread_cancel(t), 0);
	assert_int_equal(pthread_join(t, &r), 0);
	assert_ptr_equal(r, cancel ? PTHREAD_CANCELED : (void *)&flag);
}

static void
a_wait_left_by_siglongjmp_is_over_and_its_thread_may_end(void **state)
{
	static const enum kind kinds[] = { MUTEX, WRITE, SEM };
	struct sigaction       a = { .sa_handler = leave };

	(void)state;
#if defined(__SANITIZE_THREAD__)
	SKIP("thread sanitizer keeps signals back until a lock is got");
#endif
	assert_int_equal(sigaction(SIGUSR1, &a, NULL), 0);
	for (unsigned i = 0; i < 2 * sizeof(kinds) / sizeof(*kinds); i++) {
		leave_and_end(kinds[i / 2], i % 2);
		assert_int_equal(block_in((const void *)wait_for).count, 1);
		nobody_waits();
		let_go(kinds[i / 2]);
		assert_int_equal(mutex_in(NULL).count, 0);
	}
}

/* ---- the end of the thread ---- */

static void *
stays_in_the_table(void *arg)
{
	waiters_publish((uintptr_t)arg, now_ns(), trace_tid(), HOOKS_pthread_mutex_lock);
	return NULL;
}

static uint64_t
charge(const void *object)
{
	int64_t now = waiters_due((uintptr_t)object, now_ns);

	return now ? waiters_charge((uintptr_t)object, now, WAITS_UNSAMPLED, 0) : 0;
}

static void
who_ended_while_it_waited_is_charged_no_more(void **state)
{
	int64_t   until = now_ns() + DEADLINE_NS;
	int       object;
	pthread_t t;

	(void)state;
	nobody_waits();
	assert_int_equal(pthread_create(&t, NULL, stays_in_the_table, &object), 0);
	pthread_join(t, NULL);
	while (component_hooks.waiting[HOOKS_WAITING_BUCKET(&object)] && now_ns() < until)
		waiters_sweep(now_ns());
	assert_int_equal(charge(&object), 0);
	nobody_waits();
}

static void
who_waits_for_long_stays(void **state)
{
	struct waits_place place;
	int64_t            until;
	int                object;

	(void)state;
	place = waiters_publish((uintptr_t)&object, now_ns(), trace_tid(), HOOKS_pthread_mutex_lock);
	for (until = now_ns() + 3 * WAITS_TABLE_LIFE_NS; now_ns() < until; charge(&object)) {
		waiters_sweep(now_ns());
		assert_int_not_equal(component_hooks.waiting[HOOKS_WAITING_BUCKET(&object)], 0);
	}
	assert_int_equal(waiters_withdraw(place).stack, WAITS_UNSAMPLED);
	nobody_waits();
}

/* ---- the word that unlocks look at ---- */

/* Looked for once in a while, when the profile is taken. */
static void
until_nobody_is_known(void)
{
	int64_t until = now_ns() + DEADLINE_NS;

	while (component_hooks.wait_any != HOOKS_OFF && now_ns() < until)
		mutex_in(NULL);
	assert_int_equal(component_hooks.wait_any, HOOKS_OFF);
}

static void
an_unlock_looks_for_waiters_only_while_there_are_some(void **state)
{
	pthread_t t, unused;

	(void)state;
	until_nobody_is_known();
	prepare(MUTEX, &unused);
	assert_int_equal(pthread_create(&t, NULL, waiter, (void *)(uintptr_t)MUTEX), 0);
	until_waiting(MUTEX);
	assert_int_equal(component_hooks.wait_any, HOOKS_ON);
	for (int64_t until = now_ns() + 50000000; now_ns() < until; mutex_in(NULL))
		assert_int_equal(component_hooks.wait_any, HOOKS_ON);
	waits_set_mutex_fraction(0);
	assert_int_equal(component_hooks.wait_any, HOOKS_OFF);
	waits_set_mutex_fraction(1);
	assert_int_equal(component_hooks.wait_any, HOOKS_ON);
	let_go(MUTEX);
	pthread_join(t, NULL);
	until_nobody_is_known();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_left_by_siglongjmp_is_over_and_its_thread_may_end),
		cmocka_unit_test(who_ended_while_it_waited_is_charged_no_more),
		cmocka_unit_test(who_waits_for_long_stays),
		cmocka_unit_test(an_unlock_looks_for_waiters_only_while_there_are_some),
	};

	return cmocka_run_group_tests(tests, waits_on, NULL);
}
