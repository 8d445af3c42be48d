/*
 * stress_threads.c - threads that live 4 ms, are cancelled, have the smallest stack
 * there may be, come by the hundred, or are made by the bare system call; a process
 * that becomes who it is, which interrupts all of them; objects that come and go; locks.
 */
#include "stress.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BATCH 16

static void
run_batch(void *(*run)(void *), const pthread_attr_t *attr, bool cancel, uint64_t *random)
{
	pthread_t t[BATCH];
	void     *result;
	int       n = 0;

	while (n < BATCH && pthread_create(&t[n], attr, run, (void *)(uintptr_t)(stress_random(random) | 1)) == 0)
		n++;
	for (int i = 0; i < n && cancel; i++)
		pthread_cancel(t[i]);
	for (int i = 0; i < n; i++) {
		STRESS_CHECK(pthread_join(t[i], &result) == 0);
		stress_alive();
		STRESS_CHECK(result == (cancel ? PTHREAD_CANCELED : NULL));
	}
}

static void *
lives_4_ms(void *arg)
{
	uint64_t random = (uintptr_t)arg;

	stress_burn_us((int)(random % 3) * 2000);
	stress_blocks_few(&random);
	if (random % 5 == 0)
		pthread_exit(NULL);
	return NULL;
}

void
stress_short_threads(uint64_t *random)
{
	run_batch(lives_4_ms, NULL, false, random);
}

void
stress_small_stacks(uint64_t *random)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	STRESS_CHECK(pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN)) == 0);
	run_batch(lives_4_ms, &attr, false, random);
	pthread_attr_destroy(&attr);
}

/* ---- cancellation ---- */

static void
freed_at_the_end(void *block)
{
	uint64_t random = (uintptr_t)block | 1;

	free(block);
	stress_blocks_few(&random);
}

static void *
is_cancelled(void *arg)
{
	uint64_t        random = (uintptr_t)arg;
	struct timespec short_time = { 0, 200000 };
	char           *block = malloc(100 + random % 5000);

	pthread_cleanup_push(freed_at_the_end, block);
	for (;;) {
		stress_blocks_few(&random);
		if (random % 2)
			nanosleep(&short_time, NULL);
		pthread_testcancel();
	}
	pthread_cleanup_pop(1);
	return NULL;
}

void
stress_cancel(uint64_t *random)
{
	stress_alone_begin();
	run_batch(is_cancelled, NULL, true, random);
	stress_alone_end();
}

/* ---- the bare system call ---- */

#define CLONE_STACK (64 << 10)

struct bare {
	_Atomic int tid; /* cleared by the kernel at its end */
	atomic_uint done;
};

/* Has no thread-local storage of its own: nothing of libc may be called. */
static int
bare_run(void *arg)
{
	struct bare      *b = arg;
	volatile unsigned spin = 0;

	for (int i = 0; i < 3000000; i++)
		spin += (unsigned)i;
	atomic_fetch_add(&b->done, 1);
	return 0;
}

void
stress_clone(uint64_t *random)
{
	const int   flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
		CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID;
	char       *stack = mmap(NULL, CLONE_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct bare b = { 0, 0 };
	int         tid;

	stress_blocks_few(random);
	if (clone(bare_run, stack + CLONE_STACK, flags, &b, &b.tid, NULL, &b.tid) < 0) {
		STRESS_CHECK(errno == EAGAIN);
	} else {
		while ((tid = atomic_load(&b.tid)))
			syscall(SYS_futex, &b.tid, FUTEX_WAIT, tid, NULL, NULL, 0);
		STRESS_CHECK(b.done == 1);
	}
	munmap(stack, CLONE_STACK);
}

/* ---- objects that come and go ---- */

void
stress_plugins(uint64_t *random)
{
	char  path[600];
	void *handle;
	void *(*work)(size_t, uint64_t);
	char *block;
	int   which = (int)(stress_random(random) % 2);

	snprintf(path, sizeof(path), "%s/stress_plugin_%d.so", stress_dir, which);
	pthread_rwlock_rdlock(&stress_loading);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	pthread_rwlock_unlock(&stress_loading);
	if (!handle) {
		stress_wrong("%s", dlerror());
		return;
	}
	work = (void *(*)(size_t, uint64_t))dlsym(handle, "plugin_work");
	block = work(3000, stress_random(random));
	pthread_rwlock_rdlock(&stress_loading);
	STRESS_CHECK(dlclose(handle) == 0);
	pthread_rwlock_unlock(&stress_loading);
	for (int i = 0; i < 3000; i++)
		STRESS_CHECK(block[i] == 'a' + which);
	free(block); /* whoever made it is gone */
}

/* ---- crowds, and what is told to all threads ---- */

#define CROWD_STACK (256 * 1024)

static pthread_mutex_t crowd_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  crowd_is_whole = PTHREAD_COND_INITIALIZER;
static bool            crowd_whole;

static void *
one_of_crowd(void *arg)
{
	pthread_mutex_lock(&crowd_lock);
	while (!crowd_whole)
		pthread_cond_wait(&crowd_is_whole, &crowd_lock);
	pthread_mutex_unlock(&crowd_lock);
	return arg;
}

/* All of them are there at one time; there may be fewer where a limit says so. */
void
stress_crowd(uint64_t *random)
{
	const char    *text = getenv("STRESS_CROWD");
	int            n = 0, want = text ? atoi(text) : 64;
	pthread_t     *t = malloc(sizeof(*t) * (size_t)want + 1);
	pthread_attr_t attr;

	(void)random;
	crowd_whole = false;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, CROWD_STACK);
	while (n < want && !atomic_load(&stress_stop) && pthread_create(&t[n], &attr, one_of_crowd, NULL) == 0)
		n++;
	pthread_attr_destroy(&attr);
	pthread_mutex_lock(&crowd_lock);
	crowd_whole = true;
	pthread_cond_broadcast(&crowd_is_whole);
	pthread_mutex_unlock(&crowd_lock);
	for (int i = 0; i < n; i++) {
		STRESS_CHECK(pthread_join(t[i], NULL) == 0);
		stress_alive();
	}
	free(t);
}

/* glibc has every thread make the call, by a signal that nobody can block. */
void
stress_identity(uint64_t *random)
{
	stress_alone_begin();
	STRESS_CHECK(setuid(getuid()) == 0);
	STRESS_CHECK(setgid(getgid()) == 0);
	stress_alone_end();
	stress_blocks_few(random);
	usleep(1000);
}

/* ---- locks ---- */

#define LOCK_TURNS 200

static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t   changed = PTHREAD_COND_INITIALIZER;
static long             guarded, twice;
static int              turn;

void
stress_locks(uint64_t *random)
{
	struct timespec until;

	for (int i = 0; i < LOCK_TURNS; i++) {
		pthread_mutex_lock(&lock);
		if (guarded++ % 16 == 0)
			stress_blocks_few(random);
		twice += 2;
		STRESS_CHECK(twice == 2 * guarded);
		turn = !turn;
		pthread_cond_broadcast(&changed);
		if (i % 8 == 0) {
			clock_gettime(CLOCK_REALTIME, &until);
			until.tv_nsec += 200000;
			if (until.tv_nsec >= 1000000000L)
				until.tv_nsec -= 1000000000L, until.tv_sec++;
			int r = pthread_cond_timedwait(&changed, &lock, &until);
			STRESS_CHECK(r == 0 || r == ETIMEDOUT);
		}
		pthread_mutex_unlock(&lock);
		if (i % 4 == 0) {
			pthread_rwlock_wrlock(&rwlock);
		} else {
			pthread_rwlock_rdlock(&rwlock);
		}
		stress_burn_us(20);
		pthread_rwlock_unlock(&rwlock);
	}
}
