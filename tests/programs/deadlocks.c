/*
 * deadlocks.c - threads that wait for locks, each in its own way: those of the arguments.
 *
 * Waiters are named wait_..., holders hold_....  Says "ready" when all of
 * them are on their way, and ends with its standard input.  With DEADLOCKS in its environment it
 * is a component that has two.  Used by tests/threads/deadlock.t.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef LINKED
#include <component/component.h>
#include <component/main.h>
#include <component/profiler.h>
#endif

#define HOUR_SECONDS 3600

static struct {
	char            balance[64];
	pthread_mutex_t lock;
} accounts = { "", PTHREAD_MUTEX_INITIALIZER };

static pthread_mutex_t ledger = PTHREAD_MUTEX_INITIALIZER;

static void
fail(const char *what, int r)
{
	fprintf(stderr, "%s: %s\n", what, strerror(r));
	_exit(3);
}

static void
run(const char *name, void *(*routine)(void *), void *arg)
{
	pthread_t thread;
	int       r = pthread_create(&thread, NULL, routine, arg);

	if (!r)
		r = pthread_setname_np(thread, name);
	if (r && r != ESRCH && r != ENOENT) /* it may have ended already: no such thread, or none in /proc */
		fail(name, r);
}

static void *
stay(void)
{
	for (;;)
		pause();
	return NULL;
}

/* ---- circles ---- */

struct step {
	pthread_mutex_t   *has, *wants;
	pthread_barrier_t *all;
};

__attribute__((noinline)) static void *
take_both(void *arg)
{
	struct step *s = arg;

	pthread_mutex_lock(s->has);
	pthread_barrier_wait(s->all);
	pthread_mutex_lock(s->wants);
	return stay();
}

static void
circle(pthread_mutex_t *locks[], const char *const names[], unsigned count)
{
	struct step       *steps = calloc(count, sizeof(*steps));
	pthread_barrier_t *all = malloc(sizeof(*all));

	pthread_barrier_init(all, NULL, count);
	for (unsigned i = 0; i < count; i++) {
		steps[i] = (struct step){ locks[i], locks[(i + 1) % count], all };
		run(names[i], take_both, &steps[i]);
	}
}

static void
two(void)
{
	static const char *const names[] = { "wait_ledger", "wait_accounts" };
	pthread_mutex_t         *locks[] = { &accounts.lock, &ledger };

	circle(locks, names, 2);
}

static pthread_mutex_t *
mutex_new(int type, int robust, int protocol, int shared)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t    *m = calloc(1, sizeof(*m));

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, type);
	pthread_mutexattr_setrobust(&attr, robust);
	pthread_mutexattr_setprotocol(&attr, protocol);
	pthread_mutexattr_setpshared(&attr, shared);
	if (!m || pthread_mutex_init(m, &attr))
		fail("pthread_mutex_init", EINVAL);
	return m;
}

static void
three(void)
{
	static const char *const names[] = { "wait_three_b", "wait_three_c", "wait_three_a" };
	pthread_mutex_t         *locks[3];

	for (int i = 0; i < 3; i++)
		locks[i] = mutex_new(PTHREAD_MUTEX_NORMAL, 0, 0, 0);
	circle(locks, names, 3);
}

/* The kernel lets one of them wait, and not the other. */
static void
inherit_circle(void)
{
	static const char *const names[] = { "wait_refused_a", "wait_refused_b" };
	pthread_mutex_t         *locks[2];

	for (int i = 0; i < 2; i++)
		locks[i] = mutex_new(0, 0, PTHREAD_PRIO_INHERIT, 0);
	circle(locks, names, 2);
}

static void *
lock_twice(void *arg)
{
	pthread_mutex_lock(arg);
	pthread_mutex_lock(arg);
	return stay();
}

static void
again(void)
{
	run("wait_again", lock_twice, mutex_new(PTHREAD_MUTEX_NORMAL, 0, 0, 0));
}

static void *
lock_until(void *arg)
{
	struct step    *s = arg;
	struct timespec until;

	pthread_mutex_lock(s->has);
	pthread_barrier_wait(s->all);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += HOUR_SECONDS;
	pthread_mutex_timedlock(s->wants, &until);
	return stay();
}

/* A circle that ends by itself. */
static void
timed(void)
{
	static pthread_barrier_t all;
	static struct step       steps[2];
	pthread_mutex_t         *a = mutex_new(0, 0, 0, 0), *b = mutex_new(0, 0, 0, 0);

	pthread_barrier_init(&all, NULL, 2);
	steps[0] = (struct step){ a, b, &all };
	steps[1] = (struct step){ b, a, &all };
	run("wait_until", lock_until, &steps[0]);
	run("wait_timed_end", take_both, &steps[1]);
}

/* ---- one holder, one waiter ---- */

static void *
wait_mutex(void *arg)
{
	pthread_mutex_lock(arg);
	return stay();
}

struct hold {
	pthread_mutex_t *lock;
	const char      *waiter;
	int              times, ends;
};

static void *
hold(void *arg)
{
	struct hold *h = arg;

	for (int i = 0; i < h->times; i++)
		pthread_mutex_lock(h->lock);
	run(h->waiter, wait_mutex, h->lock);
	return h->ends ? NULL : stay();
}

static void
held(const char *holder, const char *waiter, pthread_mutex_t *lock, int times, int ends)
{
	struct hold *h = malloc(sizeof(*h));

	*h = (struct hold){ lock, waiter, times, ends };
	run(holder, hold, h);
}

static void
kinds(void)
{
	held("hold_recursive", "wait_recursive", mutex_new(PTHREAD_MUTEX_RECURSIVE, 0, 0, 0), 3, 0);
	held("hold_checked", "wait_checked", mutex_new(PTHREAD_MUTEX_ERRORCHECK, 0, 0, 0), 1, 0);
	held("hold_adaptive", "wait_adaptive", mutex_new(PTHREAD_MUTEX_ADAPTIVE_NP, 0, 0, 0), 1, 0);
	held("hold_robust", "wait_robust", mutex_new(0, PTHREAD_MUTEX_ROBUST, 0, 0), 1, 0);
	held("hold_inherit", "wait_inherit", mutex_new(0, 0, PTHREAD_PRIO_INHERIT, 0), 1, 0);
	held("hold_shared", "wait_shared", mutex_new(0, 0, 0, PTHREAD_PROCESS_SHARED), 1, 0);
}

static void
ended(void)
{
	held("hold_ended", "wait_ended", mutex_new(0, 0, 0, 0), 1, 1);
}

static void *
wait_for_own_number(void *arg)
{
	pthread_mutex_t *m = arg;

	m->__data.__lock = gettid();
	return wait_mutex(arg);
}

/* Robust, and held by a thread of another pid namespace that has the waiter's number there. */
static void
other_namespace(void)
{
	run("wait_other", wait_for_own_number, mutex_new(0, PTHREAD_MUTEX_ROBUST, 0, PTHREAD_PROCESS_SHARED));
}

/* Goes on in the child, whose first thread has the lock under its number of before. */
static void
forked(void)
{
	pthread_mutex_t *m = mutex_new(0, 0, 0, 0);
	pid_t            child;

	pthread_mutex_lock(m);
	child = fork();
	if (child > 0) {
		waitpid(child, NULL, 0);
		_exit(0);
	}
	run("wait_forked", wait_mutex, m);
}

/* ---- read-write locks ---- */

static void *
wait_read(void *arg)
{
	pthread_rwlock_rdlock(arg);
	return stay();
}

static void *
wait_write(void *arg)
{
	pthread_rwlock_wrlock(arg);
	return stay();
}

static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER, read_by = PTHREAD_RWLOCK_INITIALIZER;

static void *
write_it(void *arg)
{
	pthread_rwlock_wrlock(&written);
	run("wait_read", wait_read, &written);
	run("wait_write", wait_write, &written);
	(void)arg;
	return stay();
}

static void *
read_it(void *arg)
{
	pthread_rwlock_rdlock(&read_by);
	run("wait_readers", wait_write, &read_by);
	(void)arg;
	return stay();
}

static void
rwlocks(void)
{
	run("hold_written", write_it, NULL);
	run("hold_read", read_it, NULL);
}

/* ---- what has no holder ---- */

static void *
wait_cond(void *arg)
{
	static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	pthread_mutex_t      *m = mutex_new(0, 0, 0, 0);

	(void)arg;
	pthread_mutex_lock(m);
	for (;;)
		pthread_cond_wait(&cond, m);
}

static void *
wait_sem(void *arg)
{
	static sem_t none;

	(void)arg;
	for (;;)
		sem_wait(&none);
}

static void *
wait_barrier(void *arg)
{
	static pthread_barrier_t two_come;

	(void)arg;
	pthread_barrier_init(&two_come, NULL, 2);
	pthread_barrier_wait(&two_come);
	return stay();
}

static void
others(void)
{
	run("wait_cond", wait_cond, NULL);
	run("wait_sem", wait_sem, NULL);
	run("wait_barrier", wait_barrier, NULL);
}

/* ---- a crowd: it locks in one order, each lock by another thread every time ---- */

#define CROWD 12

static pthread_mutex_t  crowd_locks[4];
static pthread_rwlock_t crowd_rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void *
contend(void *arg)
{
	unsigned x = (unsigned)(size_t)arg * 2654435761u | 1;

	for (;;) {
		x = x * 1664525 + 1013904223;
		for (int i = 0; i < 4; i++)
			if (x >> (8 + i) & 1)
				pthread_mutex_lock(&crowd_locks[i]);
		(x >> 20 & 3 ? pthread_rwlock_rdlock : pthread_rwlock_wrlock)(&crowd_rwlock);
		if (x >> 24 & 1)
			sched_yield();
		pthread_rwlock_unlock(&crowd_rwlock);
		for (int i = 4; i-- > 0;)
			if (x >> (8 + i) & 1)
				pthread_mutex_unlock(&crowd_locks[i]);
	}
	return arg;
}

static void *
contend_shortly(void *arg)
{
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&crowd_locks[i % 4]);
		sched_yield();
		pthread_mutex_unlock(&crowd_locks[i % 4]);
	}
	return arg;
}

static void *
come_and_go(void *arg)
{
	pthread_t thread[4];

	for (;;) {
		for (int i = 0; i < 4; i++)
			if (pthread_create(&thread[i], NULL, contend_shortly, arg))
				fail("pthread_create", EAGAIN);
		for (int i = 0; i < 4; i++)
			pthread_join(thread[i], NULL);
	}
	return arg;
}

static void
crowd(void)
{
	static const int types[] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_NORMAL,
		PTHREAD_MUTEX_ADAPTIVE_NP };

	for (int i = 0; i < 4; i++)
		memcpy(&crowd_locks[i], mutex_new(types[i], i == 2 ? PTHREAD_MUTEX_ROBUST : 0, 0, 0), sizeof(crowd_locks[i]));
	for (size_t i = 0; i < CROWD; i++)
		run("crowd", contend, (void *)i);
	run("come_and_go", come_and_go, NULL);
}

#ifdef LINKED
static int
start(struct component *c, struct component_error *err)
{
	(void)c;
	(void)err;
	two();
	return 0;
}
#endif

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*start)(void);
	} all[] = { { "two", two }, { "three", three }, { "inherit_circle", inherit_circle }, { "again", again }, { "timed", timed }, { "kinds", kinds },
		{ "other_namespace", other_namespace },
		{ "ended", ended }, { "rwlocks", rwlocks }, { "others", others }, { "crowd", crowd } };
	char c;

#ifdef LINKED
	static const struct component_spec spec = COMPONENT_SPEC(
		.name = "deadlocks", .summary = "Hangs in a deadlock.", .version = "1.2", .start = start);

	if (getenv("DEADLOCKS"))
		return component_main(&spec, argc, argv);
	if (argc > 1 && strcmp(argv[1], "forked") == 0)
		forked();
	if (component_profiler_start("127.0.0.1:0"))
		fail("component_profiler_start", EINVAL);
#endif
	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
			if (strcmp(argv[i], all[k].name) == 0)
				all[k].start();
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	_exit(0);
}
