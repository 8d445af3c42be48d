/*
 * test_waits.c - the mutex and block profiles tell the truth, and calls do what they
 * did without us.
 *
 * Who waits is made certain by looking at the state of its thread in /proc; nothing is
 * assumed about how long anything takes.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "heap.h"
#include "hooks.h"
#include "own_thread.h"
#include "stack_table.h"
#include "waits.h"
#include "waits_parts.h"

/* Functions that can be told by an address in them: nothing else is in their section. */
#define SITE_BYTES 4096
#define SITE __attribute__((noinline, aligned(SITE_BYTES), section("sites")))
#define HELD_NS 3000000

static const struct timespec far_future = { 4000000000, 0 };

/* ---- what the profiles say ---- */

struct sum {
	int64_t count, delay;
};

static struct sum
sum_of(int (*snapshot)(struct profile *), const void *function)
{
	struct profile   p;
	const uintptr_t *pcs;
	unsigned         n;
	struct sum       sum = { 0, 0 };

	assert_int_equal(snapshot(&p), 0);
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

static struct sum
mutex_in(const void *function)
{
	return sum_of(waits_snapshot_mutex, function);
}

static struct sum
block_in(const void *function)
{
	return sum_of(waits_snapshot_block, function);
}

static void
forget(void)
{
	sites_forked(&waits_mutex_sites);
	sites_forked(&waits_block_sites);
}

/* Nobody is left in the table. */
static void
nobody_waits(void)
{
	for (int i = 0; i < HOOKS_WAITING; i++)
		assert_int_equal(component_hooks.waiting[i], 0);
}

static int64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void
hold(int64_t ns)
{
	struct timespec t = { 0, ns };

	nanosleep(&t, NULL);
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

static void
until_flag_slowly(void)
{
	while (!atomic_load(&go_on))
		hold(200000);
}

static void
once_body(void)
{
	atomic_store(&flag, 1);
	until_flag_slowly();
}

static void *
lives_until_told(void *arg)
{
	until_flag_slowly();
	return arg;
}

static int
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

static void
release_after_wait(enum kind kind)
{
	if (kind >= READ && kind <= WRITE_CLOCK)
		pthread_rwlock_unlock(&lock.rwlock);
	else if (kind == C11 || kind == C11_TIMED)
		mtx_unlock(&lock.mtx);
	else if (kind < LOCKS)
		pthread_mutex_unlock(&lock.mutex);
}

static void *
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
static void
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
		hold(200000);
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

static void *
once_runner(void *arg)
{
	if ((enum kind)(uintptr_t)arg == ONCE)
		pthread_once(&once, once_body);
	else
		call_once(&once_c11, once_body);
	return NULL;
}

static void
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
static int64_t
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
	hold(HELD_NS);
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

/* ---- tests ---- */

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

static void *
lock_and_unlock(void *arg)
{
	int r;

	atomic_store(&waiter_tid, gettid());
	r = pthread_mutex_lock(arg);
	if (r == 0 || r == EOWNERDEAD)
		pthread_mutex_unlock(arg);
	return (void *)(intptr_t)r;
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
			hold(200000);
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

/* ---- cancellation ---- */

static void
note_flag(void *arg)
{
	(void)arg;
	atomic_fetch_add(&flag, 1);
	pthread_mutex_unlock(&beside); /* it is ours again, as POSIX says */
}

SITE static void
wait_to_be_cancelled(int how)
{
	pthread_mutex_lock(&beside);
	pthread_cleanup_push(note_flag, NULL);
	atomic_store(&waiter_tid, gettid());
	if (how == 0)
		pthread_cond_wait(&cond, &beside);
	else if (how == 1)
		sem_wait(&sem);
	else
		pthread_mutex_lock(&lock.mutex);
	pthread_cleanup_pop(0);
}

static void *
cancelled(void *arg)
{
	if ((uintptr_t)arg == 2)
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	wait_to_be_cancelled((int)(uintptr_t)arg);
	return NULL;
}

static void
a_cancelled_wait_is_recorded_and_leaves_nothing_behind(void **state)
{
	pthread_t t, unused;
	void     *r;

	(void)state;
	for (uintptr_t how = 0; how < 3; how++) {
		prepare(MUTEX, &unused);
		atomic_store(&flag, 0);
		assert_int_equal(pthread_create(&t, NULL, cancelled, (void *)how), 0);
		until_waiting(MUTEX);
		forget();
		assert_int_equal(pthread_cancel(t), 0);
		assert_int_equal(pthread_join(t, &r), 0);
		assert_ptr_equal(r, PTHREAD_CANCELED);
		assert_int_equal(atomic_load(&flag), 1);
		assert_int_equal(block_in((const void *)wait_to_be_cancelled).count, 1);
		nobody_waits();
		assert_int_equal(pthread_mutex_trylock(&beside), 0);
	}
}

static void *
cancelled_with_a_post(void *arg)
{
	until_flag_slowly();
	sem_wait(arg);
	atomic_store(&flag, 1);
	return NULL;
}

static void
sem_wait_is_a_cancellation_point_without_waiting_too(void **state)
{
	pthread_t t, unused;
	int       value;

	(void)state;
	prepare(MUTEX, &unused);
	sem_post(&sem);
	atomic_store(&flag, 0);
	assert_int_equal(pthread_create(&t, NULL, cancelled_with_a_post, &sem), 0);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	assert_int_equal(pthread_cancel(t), 0);
	atomic_store(&go_on, 1);
	pthread_join(t, NULL);
	assert_int_equal(atomic_load(&flag), 0);
	sem_getvalue(&sem, &value);
	assert_int_equal(value, 1);
}

/* ---- a mutex that is gone right after its unlock ---- */

struct message {
	pthread_mutex_t mutex;
	int             done;
};

static void *
finish_message(void *arg)
{
	struct message *m = arg;

	pthread_mutex_lock(&m->mutex);
	m->done = 1;
	pthread_mutex_unlock(&m->mutex); /* from here on it may be unmapped */
	return NULL;
}

static void
nobody_touches_a_mutex_after_its_unlock(void **state)
{
	size_t page = (size_t)getpagesize();

	(void)state;
	for (int i = 0; i < 300; i++) {
		struct message *m = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		pthread_t       t;
		int             done = 0;

		assert_ptr_not_equal(m, MAP_FAILED);
		pthread_mutex_init(&m->mutex, NULL);
		pthread_mutex_lock(&m->mutex);
		assert_int_equal(pthread_create(&t, NULL, finish_message, m), 0);
		while (!component_hooks.waiting[HOOKS_WAITING_BUCKET(&m->mutex)])
			sched_yield();
		pthread_mutex_unlock(&m->mutex);
		while (!done) {
			pthread_mutex_lock(&m->mutex);
			done = m->done;
			pthread_mutex_unlock(&m->mutex);
		}
		pthread_mutex_destroy(&m->mutex);
		assert_int_equal(mprotect(m, page, PROT_NONE), 0);
		pthread_join(t, NULL);
		munmap(m, page);
	}
	nobody_waits();
}

/* ---- handlers, malloc, fork, our own ---- */

static pthread_mutex_t in_handler = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int     handled;

static void
on_signal(int signal)
{
	(void)signal;
	if (pthread_mutex_lock(&in_handler) == 0)
		pthread_mutex_unlock(&in_handler);
	atomic_fetch_add(&handled, 1);
}

static void *
contend(void *arg)
{
	while (!atomic_load(&go_on)) {
		pthread_mutex_lock(arg);
		pthread_mutex_unlock(arg);
	}
	return NULL;
}

/* The one that sends never has in_handler while it is interrupted. */
static void *
contend_for_handlers_lock(void *arg)
{
	sigset_t all;

	(void)arg;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	return contend(&in_handler);
}

static void
a_handler_that_locks_may_interrupt_any_line(void **state)
{
	struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pthread_mutex_t  m = PTHREAD_MUTEX_INITIALIZER;
	pthread_t        t[3];

	(void)state;
	forget();
	atomic_store(&go_on, 0);
	atomic_store(&handled, 0);
	assert_int_equal(sigaction(SIGUSR1, &a, NULL), 0);
	assert_int_equal(pthread_create(&t[0], NULL, contend, &m), 0);
	assert_int_equal(pthread_create(&t[1], NULL, contend, &m), 0);
	assert_int_equal(pthread_create(&t[2], NULL, contend_for_handlers_lock, NULL), 0);
	while (atomic_load(&handled) < 2000) {
		pthread_kill(t[0], SIGUSR1);
		pthread_kill(t[1], SIGUSR1);
		hold(20000);
	}
	atomic_store(&go_on, 1);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	assert_true(mutex_in(NULL).delay <= block_in(NULL).delay);
	nobody_waits();
}

static void
waiting_and_blaming_allocate_nothing(void **state)
{
	uint64_t before;

	(void)state;
	one_wait(MUTEX); /* what happens once has happened */
	if (heap_set_rate(1) < 0)
		return; /* where the heap cannot be seen there is nothing to count with */
	pthread_mutex_lock(&beside);
	prepare(MUTEX, NULL);
	atomic_store(&waiter_tid, 0);
	{
		pthread_t t;

		assert_int_equal(pthread_create(&t, NULL, lock_and_unlock, &lock.mutex), 0);
		until_waiting(MUTEX);
		before = component_hooks.calls[HOOKS_malloc] + component_hooks.calls[HOOKS_calloc];
		pthread_mutex_unlock(&lock.mutex);
		pthread_join(t, NULL);
	}
	assert_int_equal(component_hooks.calls[HOOKS_malloc] + component_hooks.calls[HOOKS_calloc], before);
	heap_set_rate(0);
}

static void
a_child_is_off_and_its_locks_work(void **state)
{
	pthread_t t, unused;
	pid_t     child;
	int       status;

	(void)state;
	prepare(MUTEX, &unused);
	assert_int_equal(pthread_create(&t, NULL, waiter, (void *)(uintptr_t)MUTEX), 0);
	until_waiting(MUTEX);
	child = fork();
	if (child == 0) {
		pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

		waits_forked();
		if (component_hooks.wait_state != HOOKS_OFF || pthread_mutex_lock(&m) || pthread_mutex_unlock(&m) ||
			pthread_mutex_unlock(&lock.mutex))
			_exit(1);
		if (block_in(NULL).count || waits_set_mutex_fraction(1) || pthread_mutex_lock(&m) ||
			pthread_mutex_unlock(&m))
			_exit(2);
		_exit(mutex_in(NULL).count ? 3 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	pthread_mutex_unlock(&lock.mutex);
	pthread_join(t, NULL);
	nobody_waits();
}

static void *
own(void *arg)
{
	waiter((void *)(uintptr_t)MUTEX);
	return arg;
}

static void
our_own_threads_are_neither_seen_nor_blamed(void **state)
{
	pthread_t t, unused;

	(void)state;
	prepare(MUTEX, &unused);
	forget();
	assert_int_equal(own_thread_start("component-test", own, NULL, &t), 0);
	until_waiting(MUTEX);
	let_go(MUTEX);
	pthread_join(t, NULL);
	assert_int_equal(block_in((const void *)wait_for).count, 0);
	assert_int_equal(mutex_in((const void *)let_go).count, 0);
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
	hold(HELD_NS);
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

static void
more_waiters_than_a_bucket_holds_are_charged_too(void **state)
{
	enum { MANY = 80 };
	pthread_t t[MANY], unused;
	struct sum sum;

	(void)state;
	prepare(MUTEX, &unused);
	for (int i = 0; i < MANY; i++) {
		atomic_store(&waiter_tid, 0);
		assert_int_equal(pthread_create(&t[i], NULL, lock_and_unlock, &lock.mutex), 0);
		until_waiting(MUTEX);
	}
	forget();
	let_go(MUTEX);
	sum = mutex_in((const void *)let_go);
	for (int i = 0; i < MANY; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(sum.count, 1);
	assert_true(sum.delay > 0);
	nobody_waits();
}

static int
set_up(void **state)
{
	(void)state;
	return waits_set_mutex_fraction(1) || waits_set_block_rate(1);
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
		cmocka_unit_test(a_cancelled_wait_is_recorded_and_leaves_nothing_behind),
		cmocka_unit_test(sem_wait_is_a_cancellation_point_without_waiting_too),
		cmocka_unit_test(nobody_touches_a_mutex_after_its_unlock),
		cmocka_unit_test(a_handler_that_locks_may_interrupt_any_line),
		cmocka_unit_test(waiting_and_blaming_allocate_nothing),
		cmocka_unit_test(a_child_is_off_and_its_locks_work),
		cmocka_unit_test(our_own_threads_are_neither_seen_nor_blamed),
		cmocka_unit_test(who_waits_for_a_condition_is_blamed_for_the_mutex_it_held),
		cmocka_unit_test(short_waits_are_sampled_in_proportion_and_sums_are_unbiased),
		cmocka_unit_test(one_of_n_unlocks_stands_for_n),
		cmocka_unit_test(off_is_off_and_what_was_counted_stays),
		cmocka_unit_test(more_waiters_than_a_bucket_holds_are_charged_too),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
