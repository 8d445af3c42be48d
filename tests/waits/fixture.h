/*
 * fixture.h - what tests of the mutex and block profiles share: what the profiles
 * say of one call site, and a thread that waits for any kind of thing.
 *
 * Who waits is made certain by looking at the state of its thread in /proc; nothing is
 * assumed about how long anything takes.
 */
#ifndef TESTS_WAITS_FIXTURE_H
#define TESTS_WAITS_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "abi.h"
#include "collector.h"
#include "stack_table.h"
#include "waits/waits.h"
#include "waiting.h"

/* Functions that can be told by an address in them: nothing else is in their section. */
#define SITE_BYTES 4096
#define SITE __attribute__((noinline, aligned(SITE_BYTES), section("sites")))
#define HELD_NS 3000000

static const struct timespec far_future = { 4000000000, 0 };

/* ---- what the profiles say ---- */

struct sum {
	int64_t count, delay;
};

static inline struct sum
sum_of(const struct collector *c, const void *function)
{
	struct product   made;
	struct profile   p;
	const uintptr_t *pcs;
	unsigned         n;
	struct sum       sum = { 0, 0 };

	assert_int_equal(c->snapshot(c, &(struct collect_params){ 0 }, &made), 0);
	p = made.profile;
	for (size_t i = 0; i < p.count; i++) {
		pcs = stack_table_pcs(p.samples[i].stack, &n);
		if (function && (n == 0 || pcs[0] - (uintptr_t)function >= SITE_BYTES))
			continue;
		sum.count += p.samples[i].values[0];
		sum.delay += p.samples[i].values[1];
	}
	profile_release(&p);
	return sum;
}

static inline struct sum
mutex_in(const void *function)
{
	return sum_of(&collect_mutex, function);
}

static inline struct sum
block_in(const void *function)
{
	return sum_of(&collect_block, function);
}

static inline void
forget(void)
{
	stack_counts_forked(&waits_mutex_sites);
	stack_counts_forked(&waits_block_sites);
}

/* Nobody is left in the table. */
static inline void
nobody_waits(void)
{
	for (int i = 0; i < HOOKS_WAITING; i++)
		assert_int_equal(component_hooks.waiting[i], 0);
}

/* ---- a thread that waits, and the objects ---- */

enum kind {
	MUTEX, TIMED, CLOCK, CLOCK_MONO, READ, WRITE, READ_TIMED, WRITE_TIMED, READ_CLOCK, WRITE_CLOCK,
	C11, C11_TIMED, LOCKS, /* the rest has no holder */
	COND = LOCKS, COND_TIMED, COND_CLOCK, C11_COND, C11_COND_TIMED, SEM, SEM_TIMED, SEM_CLOCK, BARRIER,
	JOIN, JOIN_TIMED, JOIN_CLOCK, C11_JOIN, ONCE, C11_ONCE, SPIN, KINDS
};

static union {
	pthread_mutex_t  mutex;
	pthread_rwlock_t rwlock;
	mtx_t            mtx;
} lock;
static pthread_mutex_t   beside;
static mtx_t             beside_mtx;
static pthread_cond_t    cond;
static cnd_t             cnd;
static sem_t             sem;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static pthread_once_t    once;
static once_flag         once_c11;
static pthread_t         joined;
static thrd_t            joined_c11;
static _Atomic int       go_on, flag;
static _Atomic pid_t     waiter_tid;
static uint64_t          spins; /* calls that had to, before */

static inline void
until_flag_slowly(void)
{
	while (!atomic_load(&go_on))
		rest_ns(200000);
}

static inline void
once_body(void)
{
	atomic_store(&flag, 1);
	until_flag_slowly();
}

static inline void *
lives_until_told(void *arg)
{
	until_flag_slowly();
	return arg;
}

static inline int
lives_until_told_c11(void *arg)
{
	(void)arg;
	until_flag_slowly();
	return 5;
}

SITE static int
wait_for(enum kind kind)
{
	int r = 0;

	switch (kind) {
	case MUTEX: return pthread_mutex_lock(&lock.mutex);
	case TIMED: return pthread_mutex_timedlock(&lock.mutex, &far_future);
	case CLOCK: return pthread_mutex_clocklock(&lock.mutex, CLOCK_REALTIME, &far_future);
	case CLOCK_MONO: return pthread_mutex_clocklock(&lock.mutex, CLOCK_MONOTONIC, &far_future);
	case READ: return pthread_rwlock_rdlock(&lock.rwlock);
	case WRITE: return pthread_rwlock_wrlock(&lock.rwlock);
	case READ_TIMED: return pthread_rwlock_timedrdlock(&lock.rwlock, &far_future);
	case WRITE_TIMED: return pthread_rwlock_timedwrlock(&lock.rwlock, &far_future);
	case READ_CLOCK: return pthread_rwlock_clockrdlock(&lock.rwlock, CLOCK_MONOTONIC, &far_future);
	case WRITE_CLOCK: return pthread_rwlock_clockwrlock(&lock.rwlock, CLOCK_MONOTONIC, &far_future);
	case C11: return mtx_lock(&lock.mtx);
	case C11_TIMED: return mtx_timedlock(&lock.mtx, &far_future);
	case SEM: return sem_wait(&sem);
	case SEM_TIMED: return sem_timedwait(&sem, &far_future);
	case SEM_CLOCK: return sem_clockwait(&sem, CLOCK_MONOTONIC, &far_future);
	case JOIN: return pthread_join(joined, NULL);
	case JOIN_TIMED: return pthread_timedjoin_np(joined, NULL, &far_future);
	case JOIN_CLOCK: return pthread_clockjoin_np(joined, NULL, CLOCK_MONOTONIC, &far_future);
	case C11_JOIN: return thrd_join(joined_c11, &r) || r != 5;
	case ONCE: return pthread_once(&once, once_body);
	case C11_ONCE: call_once(&once_c11, once_body); return 0;
	case SPIN: return pthread_spin_lock(&spin) || pthread_spin_unlock(&spin);
	case BARRIER: r = pthread_barrier_wait(&barrier); return r == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : r;
	default: break;
	}
	if (kind == C11_COND || kind == C11_COND_TIMED)
		mtx_lock(&beside_mtx);
	else
		pthread_mutex_lock(&beside);
	while (!r && !atomic_load(&go_on)) {
		switch (kind) {
		case COND: r = pthread_cond_wait(&cond, &beside); break;
		case COND_TIMED: r = pthread_cond_timedwait(&cond, &beside, &far_future); break;
		case COND_CLOCK: r = pthread_cond_clockwait(&cond, &beside, CLOCK_MONOTONIC, &far_future); break;
		case C11_COND: r = cnd_wait(&cnd, &beside_mtx); break;
		case C11_COND_TIMED: r = cnd_timedwait(&cnd, &beside_mtx, &far_future); break;
		default: r = -1;
		}
	}
	if (kind == C11_COND || kind == C11_COND_TIMED)
		mtx_unlock(&beside_mtx);
	else
		pthread_mutex_unlock(&beside);
	return r;
}

static inline void
release_after_wait(enum kind kind)
{
	if (kind >= READ && kind <= WRITE_CLOCK)
		pthread_rwlock_unlock(&lock.rwlock);
	else if (kind == C11 || kind == C11_TIMED)
		mtx_unlock(&lock.mtx);
	else if (kind < LOCKS)
		pthread_mutex_unlock(&lock.mutex);
}

static inline void *
waiter(void *arg)
{
	enum kind kind = (enum kind)(uintptr_t)arg;
	int       r;

	errno = 77;
	atomic_store(&waiter_tid, gettid());
	r = wait_for(kind);
	if (errno != 77)
		r = -errno;
	release_after_wait(kind);
	return (void *)(intptr_t)r;
}

/* Until this thread sleeps, or spins where it cannot sleep. */
static inline void
until_waiting(enum kind kind)
{
	char    path[64], text[256], *at;
	ssize_t n;
	int     fd, seen = 0;

	while (!atomic_load(&waiter_tid))
		sched_yield();
	if (kind == SPIN) {
		while (*(volatile uint64_t *)&component_hooks.calls[HOOKS_pthread_spin_lock] == spins)
			sched_yield();
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)atomic_load(&waiter_tid));
	while (seen < 3) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		close(fd);
		text[n > 0 ? n : 0] = '\0';
		at = strrchr(text, ')');
		seen = at && at[2] == 'S' ? seen + 1 : 0;
		rest_ns(200000);
	}
}

SITE static void
let_go(enum kind kind)
{
	switch (kind) {
	case MUTEX: case TIMED: case CLOCK: case CLOCK_MONO: pthread_mutex_unlock(&lock.mutex); break;
	case READ: case WRITE: case READ_TIMED: case WRITE_TIMED: case READ_CLOCK: case WRITE_CLOCK:
		pthread_rwlock_unlock(&lock.rwlock); break;
	case C11: case C11_TIMED: mtx_unlock(&lock.mtx); break;
	case COND: case COND_TIMED: case COND_CLOCK:
		pthread_mutex_lock(&beside); atomic_store(&go_on, 1); pthread_cond_signal(&cond); pthread_mutex_unlock(&beside); break;
	case C11_COND: case C11_COND_TIMED:
		mtx_lock(&beside_mtx); atomic_store(&go_on, 1); cnd_signal(&cnd); mtx_unlock(&beside_mtx); break;
	case SEM: case SEM_TIMED: case SEM_CLOCK: sem_post(&sem); break;
	case BARRIER: pthread_barrier_wait(&barrier); break;
	case SPIN: pthread_spin_unlock(&spin); break;
	default: atomic_store(&go_on, 1);
	}
	__asm__ volatile("");
}

static inline void *
once_runner(void *arg)
{
	if ((enum kind)(uintptr_t)arg == ONCE)
		pthread_once(&once, once_body);
	else
		call_once(&once_c11, once_body);
	return NULL;
}

static inline void
prepare(enum kind kind, pthread_t *ret_helper)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	static const pthread_cond_t  fresh_cond = PTHREAD_COND_INITIALIZER;
	static const once_flag       fresh_c11 = ONCE_FLAG_INIT;

	atomic_store(&go_on, 0);
	atomic_store(&flag, 0);
	atomic_store(&waiter_tid, 0);
	spins = component_hooks.calls[HOOKS_pthread_spin_lock];
	beside = fresh;
	cond = fresh_cond;
	once = PTHREAD_ONCE_INIT;
	once_c11 = fresh_c11;
	mtx_init(&beside_mtx, mtx_timed);
	cnd_init(&cnd);
	sem_init(&sem, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_spin_init(&spin, 0);
	if (kind >= READ && kind <= WRITE_CLOCK) {
		pthread_rwlock_init(&lock.rwlock, NULL);
		pthread_rwlock_wrlock(&lock.rwlock);
	} else if (kind == C11 || kind == C11_TIMED) {
		mtx_init(&lock.mtx, mtx_timed);
		mtx_lock(&lock.mtx);
	} else if (kind < LOCKS) {
		lock.mutex = fresh;
		pthread_mutex_lock(&lock.mutex);
	}
	if (kind == SPIN)
		pthread_spin_lock(&spin);
	if (kind == JOIN || kind == JOIN_TIMED || kind == JOIN_CLOCK)
		assert_int_equal(pthread_create(&joined, NULL, lives_until_told, NULL), 0);
	if (kind == C11_JOIN)
		assert_int_equal(thrd_create(&joined_c11, lives_until_told_c11, NULL), thrd_success);
	if (kind == ONCE || kind == C11_ONCE) {
		assert_int_equal(pthread_create(ret_helper, NULL, once_runner, (void *)(uintptr_t)kind), 0);
		while (!atomic_load(&flag))
			sched_yield();
	}
}

/* One thread waits, this one lets it go.  The least that it has waited. */
static inline int64_t
one_wait(enum kind kind)
{
	pthread_t t, helper = 0;
	void     *r;
	int64_t   since;

	prepare(kind, &helper);
	assert_int_equal(pthread_create(&t, NULL, waiter, (void *)(uintptr_t)kind), 0);
	until_waiting(kind);
	forget(); /* joins of the preparation, and the like */
	since = now_ns();
	rest_ns(HELD_NS);
	since = now_ns() - since;
	errno = 78;
	let_go(kind);
	assert_int_equal(errno, 78);
	assert_int_equal(pthread_join(t, &r), 0);
	assert_int_equal((intptr_t)r, 0);
	if (helper)
		pthread_join(helper, NULL);
	return since;
}

static inline void *
lock_and_unlock(void *arg)
{
	int r;

	atomic_store(&waiter_tid, gettid());
	r = pthread_mutex_lock(arg);
	if (r == 0 || r == EOWNERDEAD)
		pthread_mutex_unlock(arg);
	return (void *)(intptr_t)r;
}

static inline int
waits_on(void **state)
{
	(void)state;
	return waits_set_mutex_fraction(1) || waits_set_block_rate(1);
}

#endif
