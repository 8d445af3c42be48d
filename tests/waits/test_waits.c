/*
 * test_waits.c - the mutex and block profiles tell the truth of every kind of wait, and
 * calls do what they did without us.
 */
#include <config.h>

#include "fixture.h"

#include <sys/wait.h>

#include "events/wait.h"
#include "waits/waiters.h"

static void
every_wait_is_timed_once_and_blames_who_let_others_wait(void **state)
{
	struct sum block, mutex;
	int64_t    least;

	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++) {
		waits_set_block_rate(1);
		least = one_wait(kind);
		block = block_in((const void *)wait_for);
		mutex = mutex_in((const void *)let_go);
		if (block.count != 1)
			print_error("kind %d\n", (int)kind);
		assert_int_equal(block.count, 1);
		/* One that spins may not have looked at the clock when the rest goes on. */
		assert_true(block.delay >= (kind == SPIN ? 1 : least));
		assert_int_equal(mutex.count, kind < LOCKS ? 1 : 0);
		assert_true(kind >= LOCKS || (mutex.delay >= least && mutex.delay <= block.delay));
		nobody_waits();
	}
}

static void
nothing_uncontended_is_recorded(void **state)
{
	pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
	pthread_mutex_t  m = PTHREAD_MUTEX_INITIALIZER;
	sem_t            s;

	(void)state;
	forget();
	sem_init(&s, 0, 100);
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&m);
		pthread_mutex_unlock(&m);
		pthread_rwlock_rdlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
		assert_int_equal(sem_wait(&s), 0);
	}
	assert_int_equal(block_in(NULL).count, 0);
	assert_int_equal(mutex_in(NULL).count, 0);
}

static void
init_mutex(pthread_mutex_t *m, int type, int robust, int protocol)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	assert_int_equal(pthread_mutexattr_settype(&a, type), 0);
	pthread_mutexattr_setrobust(&a, robust);
	pthread_mutexattr_setprotocol(&a, protocol);
	assert_int_equal(pthread_mutex_init(m, &a), 0);
	pthread_mutexattr_destroy(&a);
}

SITE static int
unlock_here(pthread_mutex_t *m)
{
	int r = pthread_mutex_unlock(m);

	__asm__ volatile("");
	return r;
}

static void
every_type_of_mutex_keeps_its_rules_and_is_seen(void **state)
{
	static const int types[] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
		PTHREAD_MUTEX_ADAPTIVE_NP };
	pthread_mutex_t m;
	pthread_t       t;
	void           *r;

	(void)state;
	for (int i = 0; i < 4 * 2 * 2; i++) {
		int type = types[i % 4];

		init_mutex(&m, type, i & 4 ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED,
			i & 8 ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
		assert_int_equal(pthread_mutex_lock(&m), 0);
		if (type == PTHREAD_MUTEX_RECURSIVE) {
			assert_int_equal(pthread_mutex_lock(&m), 0);
			assert_int_equal(pthread_mutex_unlock(&m), 0);
		}
		forget();
		if (type == PTHREAD_MUTEX_ERRORCHECK)
			assert_int_equal(pthread_mutex_lock(&m), EDEADLK);
		assert_int_equal(block_in(NULL).count, 0);
		atomic_store(&waiter_tid, 0);
		assert_int_equal(pthread_create(&t, NULL, lock_and_unlock, &m), 0);
		until_waiting(MUTEX);
		assert_int_equal(unlock_here(&m), 0);
		assert_int_equal(pthread_join(t, &r), 0);
		assert_int_equal((intptr_t)r, 0);
		assert_int_equal(mutex_in((const void *)unlock_here).count, 1);
		if (type == PTHREAD_MUTEX_ERRORCHECK)
			assert_int_equal(pthread_mutex_unlock(&m), EPERM);
		assert_int_equal(pthread_mutex_destroy(&m), 0);
		nobody_waits();
	}
}

static void *
lock_and_die(void *arg)
{
	assert_int_equal(pthread_mutex_lock(arg), 0);
	until_flag_slowly();
	return NULL;
}

static void
a_mutex_whose_owner_died_is_got_with_EOWNERDEAD(void **state)
{
	pthread_mutex_t m;
	pthread_t       owner, t;
	void           *r;

	(void)state;
	for (int contended = 0; contended < 2; contended++) {
		init_mutex(&m, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
		atomic_store(&go_on, !contended);
		atomic_store(&waiter_tid, 0);
		assert_int_equal(pthread_create(&owner, NULL, lock_and_die, &m), 0);
		if (!contended)
			pthread_join(owner, NULL);
		while (pthread_mutex_trylock(&m) == 0) { /* it does not have it yet */
			pthread_mutex_unlock(&m);
			rest_ns(200000);
		}
		if (!contended) /* trylock was the one that got it */
			assert_int_equal(pthread_mutex_unlock(&m), 0);
		forget();
		if (!contended) { /* unlocked without being made consistent */
			assert_int_equal(pthread_mutex_lock(&m), ENOTRECOVERABLE);
			pthread_mutex_destroy(&m);
			continue;
		}
		assert_int_equal(pthread_create(&t, NULL, lock_and_unlock, &m), 0);
		until_waiting(MUTEX);
		atomic_store(&go_on, 1);
		assert_int_equal(pthread_join(t, &r), 0);
		assert_int_equal((intptr_t)r, EOWNERDEAD);
		pthread_join(owner, NULL);
		assert_int_equal(mutex_in(NULL).count, 0);
		nobody_waits();
		pthread_mutex_destroy(&m);
	}
	init_mutex(&m, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
	atomic_store(&go_on, 1);
	assert_int_equal(pthread_create(&owner, NULL, lock_and_die, &m), 0);
	pthread_join(owner, NULL);
	assert_int_equal(pthread_mutex_lock(&m), EOWNERDEAD);
	assert_int_equal(pthread_mutex_consistent(&m), 0);
	assert_int_equal(pthread_mutex_unlock(&m), 0);
	assert_int_equal(pthread_mutex_lock(&m), 0);
	assert_int_equal(pthread_mutex_unlock(&m), 0);
}

static void
time_runs_out_and_bad_arguments_are_refused_as_ever(void **state)
{
	static const struct timespec past = { 1, 0 }, bad = { 1, -1 };
	pthread_mutex_t  m = PTHREAD_MUTEX_INITIALIZER;
	pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
	sem_t            s;

	(void)state;
	sem_init(&s, 0, 0);
	errno = 0;
	assert_int_equal(sem_timedwait(&s, &past), -1);
	assert_int_equal(errno, ETIMEDOUT);
	assert_int_equal(sem_timedwait(&s, &bad), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(sem_clockwait(&s, CLOCK_THREAD_CPUTIME_ID, &past), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(pthread_mutex_timedlock(&m, &bad), 0); /* free: not looked at */
	assert_int_equal(pthread_mutex_timedlock(&m, &past), ETIMEDOUT);
	assert_int_equal(pthread_mutex_timedlock(&m, &bad), EINVAL);
	assert_int_equal(pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &past), ETIMEDOUT);
	assert_int_equal(pthread_mutex_clocklock(&m, CLOCK_THREAD_CPUTIME_ID, &past), EINVAL);
	assert_int_equal(pthread_mutex_unlock(&m), 0);
	assert_int_equal(pthread_rwlock_timedrdlock(&rwlock, &bad), EINVAL);
	assert_int_equal(pthread_rwlock_wrlock(&rwlock), 0);
	assert_int_equal(pthread_rwlock_rdlock(&rwlock), EDEADLK);
	assert_int_equal(pthread_rwlock_timedwrlock(&rwlock, &past), EDEADLK);
	assert_int_equal(pthread_rwlock_unlock(&rwlock), 0);
	assert_int_equal(pthread_join(pthread_self(), NULL), EDEADLK);
	nobody_waits();
}

/* ---- cond_wait unlocks ---- */

static void *
cond_holder(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&beside);
	atomic_store(&flag, 1);
	while (!component_hooks.waiting[HOOKS_WAITING_BUCKET(&beside)])
		sched_yield();
	rest_ns(HELD_NS);
	while (atomic_load(&flag) < 2)
		pthread_cond_wait(&cond, &beside);
	pthread_mutex_unlock(&beside);
	return NULL;
}

static void
who_waits_for_a_condition_is_blamed_for_the_mutex_it_held(void **state)
{
	struct sum mutex;
	pthread_t  t, unused;

	(void)state;
	prepare(MUTEX, &unused);
	forget();
	atomic_store(&flag, 0);
	assert_int_equal(pthread_create(&t, NULL, cond_holder, NULL), 0);
	while (!atomic_load(&flag))
		sched_yield();
	pthread_mutex_lock(&beside);
	mutex = mutex_in(NULL);
	assert_int_equal(mutex.count, 1);
	assert_true(mutex.delay >= HELD_NS);
	atomic_store(&flag, 2);
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&beside);
	pthread_join(t, NULL);
}

/* ---- rates ---- */

static void
short_waits_are_sampled_in_proportion_and_sums_are_unbiased(void **state)
{
	static const int64_t rates[] = { 1, 1000, 100000 };
	static const int64_t delays[] = { 10, 500, 1500, 90000 };
	const int            rounds = 400000;

	(void)state;
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 4; k++) {
			double   count = 0, delay = 0;
			uint64_t random = 88172645463325252ULL;
			int      taken = 0;

			for (int n = 0; n < rounds; n++) {
				struct waits_weight w;

				random ^= random << 13;
				random ^= random >> 7;
				random ^= random << 17;
				if (!waits_weigh(delays[k], rates[i], random >> 1, &w))
					continue;
				taken++;
				count += (double)w.count / SITES_ONE;
				delay += (double)w.delay_ns;
			}
			if (delays[k] >= rates[i])
				assert_int_equal(taken, rounds);
			/* 10 of 100000: 44 samples; five standard deviations. */
			assert_true(count > rounds * 0.25 && count < rounds * 1.9);
			if (delays[k] * 1000 > rates[i] * 10)
				assert_true(count > rounds * 0.93 && count < rounds * 1.07);
			assert_true(delay / count > (double)delays[k] * 0.98 && delay / count < (double)delays[k] * 1.02);
		}
}

static void
one_of_n_unlocks_stands_for_n(void **state)
{
	struct sum sum;

	(void)state;
	assert_int_equal(waits_set_mutex_fraction(3), 0);
	for (int i = 0; i < 200; i++) { /* none in all of them: one chance in 10^35 */
		one_wait(MUTEX);
		sum = mutex_in((const void *)let_go);
		if (sum.count > 0)
			break;
	}
	assert_int_equal(sum.count, 3);
	assert_true(sum.delay >= 3 * HELD_NS);
	waits_set_mutex_fraction(1);
}

static void
off_is_off_and_what_was_counted_stays(void **state)
{
	struct sum before;

	(void)state;
	one_wait(MUTEX);
	before = mutex_in(NULL);
	assert_true(before.count >= 1);
	waits_set_mutex_fraction(0);
	assert_int_equal(component_hooks.wait_state, HOOKS_ON);
	waits_set_block_rate(0);
	assert_int_equal(component_hooks.wait_state, HOOKS_OFF);
	assert_int_equal(mutex_in(NULL).count, before.count);
	assert_int_equal(waits_set_mutex_fraction(-5), 0);
	assert_int_equal(waits_mutex_fraction(), 0);
	waits_set_mutex_fraction(1);
	waits_set_block_rate(1);
}

#define SWITCHES 100000

/* A little while, of another length each time: what is to meet is a few instructions long. */
static void
lag(int n)
{
	for (volatile int k = 0; k < n; k++)
		;
}

static _Atomic int traces_begun, traces_ended;

static void *
end_traces(void *arg)
{
	for (int i = 1; i <= SWITCHES; i++) {
		while (atomic_load(&traces_begun) < i)
			sched_yield();
		lag(i / 64 % 512);
		collect_mutex.tell_waits(false);
		atomic_store(&traces_ended, i);
	}
	return arg;
}

static void
a_rate_that_is_set_while_a_trace_ends_is_in_force(void **state)
{
	pthread_t t;
	int       off = 0;

	(void)state;
	waits_set_mutex_fraction(0);
	assert_int_equal(pthread_create(&t, NULL, end_traces, NULL), 0);
	for (int i = 1; i <= SWITCHES; i++) {
		waits_set_block_rate(0);
		assert_int_equal(collect_mutex.tell_waits(true), 0);
		atomic_store(&traces_begun, i);
		lag(i % 64 * 8);
		waits_set_block_rate(1);
		while (atomic_load(&traces_ended) < i)
			sched_yield();
		off += component_hooks.wait_state == HOOKS_OFF;
	}
	pthread_join(t, NULL);
	waits_set_mutex_fraction(1);
	assert_int_equal(off, 0);
}

struct seen {
	int     count;
	int64_t ns;
};

static void
of_waiter(void *arg, const struct trace_event *e)
{
	struct seen *s = arg;

	if (e->type != TRACE_EVENT_WAITED || e->tid != waiter_tid)
		return;
	s->count++;
	s->ns += (int64_t)(e->value - e->time_ns);
}

/* What the trace itself takes, to walk the stack, is in neither. */
static void
a_wait_is_as_long_in_the_block_profile_as_in_a_trace_that_is_open(void **state)
{
	static const enum kind kinds[] = { MUTEX, SEM, ONCE };

	(void)state;
	assert_int_equal(events_ring_open(), 0);
	assert_int_equal(events_wait_open(), 0);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct seen seen = { 0 };
		struct sum  block;

		one_wait(kinds[i]);
		events_ring_drain(of_waiter, &seen);
		block = block_in((const void *)wait_for);
		assert_int_equal(seen.count, 1);
		assert_int_equal(block.count, 1);
		assert_int_equal(block.delay, seen.ns);
	}
	events_wait_close();
	events_ring_close();
}

static bool
says(const struct collector *c, const char *words)
{
	struct product made;
	bool           does;

	assert_int_equal(c->snapshot(c, &(struct collect_params){ 0 }, &made), 0);
	does = strstr(made.profile.comments, words);
	profile_release(&made.profile);
	return does;
}

static void
waiters_without_a_place_are_in_the_mutex_profile_and_in_none_of_a_child(void **state)
{
	enum { PLACES = HOOKS_WAITING * 63 };
	static struct waits_place places[PLACES];
	int64_t                   now = now_ns();
	pid_t                     child;
	int                       status;

	(void)state;
	for (uintptr_t i = 0; i < PLACES; i++) {
		places[i] = waiters_publish((i + 1) * 64, now, gettid(), HOOKS_pthread_mutex_lock);
		assert_true(places[i].bit >= 0);
	}
	assert_true(waiters_publish(64, now, gettid(), HOOKS_pthread_mutex_lock).bit < 0);
	for (int i = 0; i < PLACES; i++)
		waiters_withdraw(places[i]);
	nobody_waits();
	assert_true(says(&collect_mutex, "mutex: 1 waiters found no place"));
	assert_false(says(&collect_block, "found no place"));
	one_wait(MUTEX);
	assert_true(collect_mutex.count(&collect_mutex) > 0 && collect_block.count(&collect_block) > 0);
	atomic_fetch_add(&waits_truncated, 1);
	child = fork();
	if (child == 0) {
		waits_forked();
		_exit((waiters_crowded() ? 1 : 0) | (atomic_load(&waits_truncated) ? 2 : 0) |
			(collect_mutex.count(&collect_mutex) ? 4 : 0) | (collect_block.count(&collect_block) ? 8 : 0));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void
more_waiters_than_a_bucket_holds_are_charged_too(void **state)
{
	enum { MANY = 80 };
	pthread_t t[MANY], unused;
	struct sum sum;
	int64_t   least = 0; /* all that they have waited until let_go() */

	(void)state;
	prepare(MUTEX, &unused);
	for (int i = 0; i < MANY; i++) {
		atomic_store(&waiter_tid, 0);
		assert_int_equal(pthread_create(&t[i], NULL, lock_and_unlock, &lock.mutex), 0);
		until_waiting(MUTEX);
		least -= now_ns();
	}
	forget();
	least += MANY * now_ns();
	let_go(MUTEX);
	for (int i = 0; i < MANY; i++)
		while (pthread_tryjoin_np(t[i], NULL)) /* a join is a wait, too */
			rest_ns(200000);
	sum = mutex_in(NULL);
	assert_int_equal(sum.count, MANY);
	assert_int_equal(sum.delay, block_in(NULL).delay);
	/* How long they wait for each other afterwards is the machine's. */
	assert_true(mutex_in((const void *)let_go).delay >= least);
	nobody_waits();
}

/* Locked by the hooks, and by libc's trylock, which is not hooked. */
static void *
look_into_plain_ones(void *arg)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_t              ours = fresh, theirs = fresh;
	bool                        *alike = arg;

	*alike = true;
	for (int i = 0; i < 3; i++) {
		*alike = *alike && pthread_mutex_lock(&ours) == 0 && pthread_mutex_trylock(&theirs) == 0 &&
			memcmp(&ours, &theirs, sizeof(ours)) == 0 && pthread_mutex_trylock(&ours) == EBUSY;
		pthread_mutex_unlock(&ours);
		pthread_mutex_unlock(&theirs);
		*alike = *alike && memcmp(&ours, &fresh, sizeof(fresh)) == 0;
	}
	return NULL;
}

static void
a_plain_mutex_holds_what_libc_writes_in_each_thread_and_in_a_child(void **state)
{
	pthread_t t;
	pid_t     child;
	bool      alike = false;
	int       status;

	(void)state;
	waits_set_block_rate(1);
	/* A sanitizer's functions see each lock; that the hooks lock at all otherwise is cost.t's to count. */
	assert_int_equal(component_hooks.plain_mutexes != 0, component_hooks.mutexes_are_libcs);
	look_into_plain_ones(&alike);
	assert_true(alike);
	alike = false;
	assert_int_equal(pthread_create(&t, NULL, look_into_plain_ones, &alike), 0);
	pthread_join(t, NULL);
	assert_true(alike);
	child = fork();
	if (child == 0) {
		waits_forked();
		waits_set_block_rate(1);
		look_into_plain_ones(&alike);
		_exit(!alike || component_hooks.wait_state != HOOKS_ON);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_wait_is_timed_once_and_blames_who_let_others_wait),
		cmocka_unit_test(nothing_uncontended_is_recorded),
		cmocka_unit_test(every_type_of_mutex_keeps_its_rules_and_is_seen),
		cmocka_unit_test(a_mutex_whose_owner_died_is_got_with_EOWNERDEAD),
		cmocka_unit_test(time_runs_out_and_bad_arguments_are_refused_as_ever),
		cmocka_unit_test(who_waits_for_a_condition_is_blamed_for_the_mutex_it_held),
		cmocka_unit_test(short_waits_are_sampled_in_proportion_and_sums_are_unbiased),
		cmocka_unit_test(one_of_n_unlocks_stands_for_n),
		cmocka_unit_test(off_is_off_and_what_was_counted_stays),
		cmocka_unit_test(a_plain_mutex_holds_what_libc_writes_in_each_thread_and_in_a_child),
		cmocka_unit_test(more_waiters_than_a_bucket_holds_are_charged_too),
		cmocka_unit_test(a_wait_is_as_long_in_the_block_profile_as_in_a_trace_that_is_open),
		cmocka_unit_test(a_rate_that_is_set_while_a_trace_ends_is_in_force),
		cmocka_unit_test(waiters_without_a_place_are_in_the_mutex_profile_and_in_none_of_a_child),
	};

	return cmocka_run_group_tests(tests, waits_on, NULL);
}
