/*
 * test_blame.c - the mutex profile counts each wait once, charges all of its time, and
 * charges it to those who let the waiter wait.
 *
 * Waiters that are there for certain, and never get the lock, are published by hand.
 */
#include <config.h>

#include "fixture.h"

#include "events/ring.h"
#include "waits/waiters.h"

#define CROWD 200

static pthread_mutex_t locks[100000];

SITE static void
unlock_first(pthread_mutex_t *m)
{
	pthread_mutex_unlock(m);
	__asm__ volatile("");
}

SITE static void
unlock_second(pthread_mutex_t *m)
{
	pthread_mutex_unlock(m);
	__asm__ volatile("");
}

SITE static void
unlock_rwlock(void)
{
	pthread_rwlock_unlock(&lock.rwlock);
	__asm__ volatile("");
}

static struct waits_place
publish(const void *object)
{
	return waiters_publish((uintptr_t)object, trace_now_ns(), trace_tid(), HOOKS_pthread_mutex_lock);
}

/* Another lock with this one's bucket. */
static pthread_mutex_t *
neighbour(const pthread_mutex_t *of)
{
	for (size_t i = 0; i < sizeof(locks) / sizeof(*locks); i++)
		if (&locks[i] != of && HOOKS_WAITING_BUCKET(&locks[i]) == HOOKS_WAITING_BUCKET(of))
			return &locks[i];
	fail_msg("no two locks of one bucket");
	return NULL;
}

/* ---- what does not release ---- */

static void
only_the_last_unlock_of_a_recursive_mutex_is_blamed(void **state)
{
	pthread_mutexattr_t a;
	pthread_mutex_t     m;
	pthread_t           t;

	(void)state;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
	for (int robust = 0; robust < 2; robust++) {
		pthread_mutexattr_setrobust(&a, robust ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED);
		pthread_mutex_init(&m, &a);
		pthread_mutex_lock(&m);
		atomic_store(&waiter_tid, 0);
		assert_int_equal(pthread_create(&t, NULL, lock_and_unlock, &m), 0);
		until_waiting(MUTEX);
		forget();
		for (int i = 0; i < 10; i++) {
			pthread_mutex_lock(&m);
			rest_ns(HELD_NS);
			unlock_first(&m);
		}
		unlock_second(&m);
		pthread_join(t, NULL);
		assert_int_equal(mutex_in((const void *)unlock_first).delay, 0);
		assert_int_equal(mutex_in((const void *)unlock_second).count, 1);
		assert_true(mutex_in((const void *)unlock_second).delay >= 10 * HELD_NS);
		nobody_waits();
		pthread_mutex_destroy(&m);
	}
}

static void
an_unlock_that_is_refused_blames_nobody(void **state)
{
	pthread_mutexattr_t a;
	pthread_mutex_t     m;
	struct waits_place  place;

	(void)state;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&m, &a);
	forget();
	place = publish(&m);
	assert_int_equal(pthread_mutex_unlock(&m), EPERM);
	assert_int_equal(waiters_withdraw(place).stack, 0);
	assert_int_equal(mutex_in(NULL).delay, 0);
}

static void *
reads_and_unlocks(void *arg)
{
	(void)arg;
	pthread_rwlock_rdlock(&lock.rwlock);
	atomic_store(&flag, 1);
	until_flag_slowly();
	unlock_rwlock();
	return NULL;
}

static void
only_the_last_reader_is_blamed_by_a_writer(void **state)
{
	pthread_t t, reader, unused;

	(void)state;
	prepare(WRITE, &unused);
	pthread_rwlock_unlock(&lock.rwlock);
	assert_int_equal(pthread_create(&reader, NULL, reads_and_unlocks, NULL), 0);
	while (!atomic_load(&flag))
		sched_yield();
	pthread_rwlock_rdlock(&lock.rwlock);
	assert_int_equal(pthread_create(&t, NULL, waiter, (void *)(uintptr_t)WRITE), 0);
	until_waiting(WRITE);
	forget();
	let_go(WRITE); /* the first of two */
	rest_ns(HELD_NS);
	atomic_store(&go_on, 1);
	pthread_join(reader, NULL);
	pthread_join(t, NULL);
	assert_int_equal(mutex_in((const void *)let_go).delay, 0);
	assert_int_equal(mutex_in((const void *)unlock_rwlock).count, 1);
	assert_int_equal(mutex_in((const void *)unlock_rwlock).delay, block_in((const void *)wait_for).delay);
	nobody_waits();
}

/* ---- once for each wait ---- */

static void
unlocks_that_a_waiter_sees_in_vain_count_for_nothing(void **state)
{
	pthread_mutex_t    m = PTHREAD_MUTEX_INITIALIZER;
	struct waits_place place;
	int64_t            since = now_ns();

	(void)state;
	forget();
	place = publish(&m);
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&m);
		unlock_first(&m);
	}
	assert_int_not_equal(waiters_withdraw(place).stack, 0);
	assert_int_equal(mutex_in(NULL).count, 0);
	assert_in_range(mutex_in((const void *)unlock_first).delay, 1, now_ns() - since);
	nobody_waits();
}

static void
who_holds_for_long_is_charged_for_himself(void **state)
{
	pthread_mutex_t    m = PTHREAD_MUTEX_INITIALIZER;
	struct waits_place place;

	(void)state;
	forget();
	place = publish(&m);
	pthread_mutex_lock(&m);
	unlock_first(&m);
	pthread_mutex_lock(&m);
	rest_ns(HELD_NS);
	unlock_second(&m);
	waiters_withdraw(place);
	assert_true(mutex_in((const void *)unlock_second).delay >= HELD_NS);
	assert_true(mutex_in((const void *)unlock_first).delay > 0);
}

static void *
locks_until_told(void *arg)
{
	while (!atomic_load(&go_on)) {
		pthread_mutex_lock(arg);
		for (volatile int i = 0; i < 300; i++)
			;
		pthread_mutex_unlock(arg);
	}
	return NULL;
}

static void
contentions_and_delay_are_those_of_the_waits(void **state)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	struct sum      block, mutex;
	pthread_t       t[4];

	(void)state;
	forget();
	atomic_store(&go_on, 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, locks_until_told, &m), 0);
	do {
		rest_ns(HELD_NS);
	} while (block_in(NULL).count < 200);
	atomic_store(&go_on, 1);
	for (int i = 0; i < 4; i++)
		while (pthread_tryjoin_np(t[i], NULL)) /* a join is a wait, too */
			rest_ns(200000);
	block = block_in(NULL);
	mutex = mutex_in(NULL);
	/* Whose wait began when the lock had just been released has nobody to blame. */
	assert_in_range(mutex.count, block.count / 2, block.count);
	assert_in_range(mutex.delay, block.delay / 2, block.delay);
	nobody_waits();
}

static void *
holds_until_told(void *arg)
{
	pthread_mutex_lock(arg);
	atomic_store(&flag, 1);
	until_flag_slowly();
	pthread_mutex_unlock(arg);
	return NULL;
}

static void
who_gave_up_is_charged_to_those_alone_who_unlocked_meanwhile(void **state)
{
	struct timespec until;
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_t       t;

	(void)state;
	atomic_store(&go_on, 0);
	atomic_store(&flag, 0);
	assert_int_equal(pthread_create(&t, NULL, holds_until_told, &m), 0);
	while (!atomic_load(&flag))
		sched_yield();
	forget();
	clock_gettime(CLOCK_REALTIME, &until);
	assert_int_equal(pthread_mutex_timedlock(&m, &until), ETIMEDOUT);
	atomic_store(&go_on, 1);
	while (pthread_tryjoin_np(t, NULL)) /* a join is a wait, too */
		rest_ns(200000);
	assert_int_equal(mutex_in(NULL).count, 0);
	assert_int_equal(mutex_in(NULL).delay, 0);
}

/* ---- two locks of one bucket ---- */

/* before: the crowd is there before the waiter is. */
static void
beside_a_crowd(bool before)
{
	pthread_mutex_t   *other;
	struct waits_place crowd[CROWD];
	pthread_t          t, unused;
	struct sum         block, mutex;

	prepare(MUTEX, &unused);
	other = neighbour(&lock.mutex);
	pthread_mutex_init(other, NULL);
	for (int i = 0; before && i < CROWD; i++)
		crowd[i] = publish(other);
	assert_int_equal(pthread_create(&t, NULL, waiter, (void *)(uintptr_t)MUTEX), 0);
	until_waiting(MUTEX);
	for (int i = 0; !before && i < CROWD; i++)
		crowd[i] = publish(other);
	forget();
	for (int i = 0; i < 64; i++) /* the bucket has no waiter of its own any more */
		waiters_withdraw(crowd[i]);
	rest_ns(HELD_NS);
	let_go(MUTEX);
	while (pthread_tryjoin_np(t, NULL))
		rest_ns(200000);
	block = block_in((const void *)wait_for);
	mutex = mutex_in((const void *)let_go);
	assert_int_equal(mutex.count, 1);
	assert_int_equal(mutex.delay, block.delay);
	for (int i = 64; i < CROWD; i++)
		waiters_withdraw(crowd[i]);
	nobody_waits();
}

static void
two_locks_of_one_bucket_are_told_apart(void **state)
{
	(void)state;
	beside_a_crowd(true);
	beside_a_crowd(false);
}

static void
all_of_a_crowd_are_charged(void **state)
{
	struct waits_place crowd[CROWD];
	pthread_mutex_t    m = PTHREAD_MUTEX_INITIALIZER;
	int64_t            first, until;

	(void)state;
	forget();
	first = now_ns();
	for (int i = 0; i < CROWD; i++)
		crowd[i] = publish(&m);
	pthread_mutex_lock(&m);
	rest_ns(HELD_NS);
	unlock_first(&m);
	until = now_ns();
	for (int i = 0; i < CROWD; i++)
		assert_int_not_equal(waiters_withdraw(crowd[i]).stack, 0);
	assert_in_range(mutex_in((const void *)unlock_first).delay, CROWD * HELD_NS, CROWD * (until - first));
	nobody_waits();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_last_unlock_of_a_recursive_mutex_is_blamed),
		cmocka_unit_test(an_unlock_that_is_refused_blames_nobody),
		cmocka_unit_test(only_the_last_reader_is_blamed_by_a_writer),
		cmocka_unit_test(unlocks_that_a_waiter_sees_in_vain_count_for_nothing),
		cmocka_unit_test(who_holds_for_long_is_charged_for_himself),
		cmocka_unit_test(contentions_and_delay_are_those_of_the_waits),
		cmocka_unit_test(who_gave_up_is_charged_to_those_alone_who_unlocked_meanwhile),
		cmocka_unit_test(two_locks_of_one_bucket_are_told_apart),
		cmocka_unit_test(all_of_a_crowd_are_charged),
	};

	return cmocka_run_group_tests(tests, waits_on, NULL);
}
