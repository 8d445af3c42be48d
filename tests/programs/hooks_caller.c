/*
 * hooks_caller.c - calls each hooked name once; built into a program and, with
 * another CALLER, into libraries linked before us, after us, or opened later.
 *
 * References are weak: what nothing defines is skipped.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi.h"

#define PASTE(a, b) a##b
#define NAME(caller) PASTE(hooks_call_, caller)

#define WEAK __attribute__((weak))
extern void  *reallocarray(void *, size_t, size_t) WEAK;
extern void   cfree(void *) WEAK;
extern void  *memalign(size_t, size_t) WEAK;
extern void  *valloc(size_t) WEAK;
extern void  *pvalloc(size_t) WEAK;
extern size_t malloc_usable_size(void *) WEAK;
extern void   free_sized(void *, size_t) WEAK;
extern void   free_aligned_sized(void *, size_t, size_t) WEAK;
#define NEW(name) extern void *name(size_t, uintptr_t, uintptr_t) WEAK;
#define DELETE(name) extern void name(void *, uintptr_t, uintptr_t) WEAK;
HOOKS_NEW_NAMES(NEW)
HOOKS_DELETE_NAMES(DELETE)
extern int pthread_create(uintptr_t *, const void *, void *(*)(void *), void *) WEAK;
extern int pthread_join(uintptr_t, void **) WEAK;
extern int thrd_create(uintptr_t *, int (*)(void *), void *) WEAK;
extern int thrd_join(uintptr_t, int *) WEAK;

int NAME(CALLER)(const char *name);

static void *
nothing(void *arg)
{
	return arg;
}

static int
nothing_c11(void *arg)
{
	(void)arg;
	return 0;
}

/* ---- waits: objects of all zeros are ready, but for three ---- */

#define FAR_FUTURE { 4000000000, 0 }

struct seconds {
	long s, ns;
};

#define WAITS(X)                                                                                      \
	X(pthread_mutex_lock) X(pthread_mutex_timedlock) X(pthread_mutex_clocklock)                   \
	X(pthread_mutex_unlock) X(pthread_rwlock_rdlock) X(pthread_rwlock_wrlock)                     \
	X(pthread_rwlock_timedrdlock) X(pthread_rwlock_timedwrlock) X(pthread_rwlock_clockrdlock)     \
	X(pthread_rwlock_clockwrlock) X(pthread_rwlock_unlock) X(pthread_cond_wait)                   \
	X(pthread_cond_timedwait) X(pthread_cond_clockwait) X(pthread_cond_broadcast) X(sem_wait)     \
	X(sem_timedwait) X(sem_clockwait) X(sem_init) X(pthread_barrier_wait) X(pthread_barrier_init) \
	X(pthread_spin_lock) X(pthread_spin_init) X(pthread_timedjoin_np) X(pthread_clockjoin_np)     \
	X(pthread_once) X(mtx_lock) X(mtx_timedlock) X(mtx_unlock) X(cnd_wait) X(cnd_timedwait)       \
	X(cnd_broadcast) X(call_once)
#define DECLARE(function) extern int function(uintptr_t, uintptr_t, uintptr_t, uintptr_t) WEAK;
WAITS(DECLARE)

#ifdef HOOKS_COND_OLD_VERSION
DECLARE(old_wait)
DECLARE(old_timedwait)
DECLARE(old_broadcast)
__asm__(".symver old_wait,pthread_cond_wait@" HOOKS_COND_OLD_VERSION);
__asm__(".symver old_timedwait,pthread_cond_timedwait@" HOOKS_COND_OLD_VERSION);
__asm__(".symver old_broadcast,pthread_cond_broadcast@" HOOKS_COND_OLD_VERSION);
#endif

typedef int any_fn(uintptr_t, uintptr_t, uintptr_t, uintptr_t);

struct waker {
	uintptr_t cond;
	any_fn   *broadcast;
	int       done;
};

static void *
wake(void *arg)
{
	struct waker *w = arg;

	while (!__atomic_load_n(&w->done, __ATOMIC_ACQUIRE)) {
		w->broadcast(w->cond, 0, 0, 0);
		syscall(SYS_sched_yield);
	}
	return NULL;
}

/* Waits for a condition that another thread signals until it is heard. */
static int
call_cond(any_fn *wait, any_fn *broadcast, int clock_first)
{
	static const struct seconds far = FAR_FUTURE;
	uintptr_t    mutex[16] = { 0 }, cond[16] = { 0 }, thread;
	struct waker w = { (uintptr_t)cond, broadcast, 0 };
	int          r;

	if (pthread_create(&thread, NULL, wake, &w))
		return -1;
	pthread_mutex_lock((uintptr_t)mutex, 0, 0, 0);
	r = clock_first ? wait((uintptr_t)cond, (uintptr_t)mutex, 0, (uintptr_t)&far) :
			  wait((uintptr_t)cond, (uintptr_t)mutex, (uintptr_t)&far, 0);
	pthread_mutex_unlock((uintptr_t)mutex, 0, 0, 0);
	__atomic_store_n(&w.done, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	return r == 0 ? 1 : -1;
}

static void
routine(void)
{
}

static int
call_wait(const char *name)
{
	static const struct seconds far = FAR_FUTURE, past = { 1, 0 };
	uintptr_t object[16] = { 0 }, o = (uintptr_t)object, thread, at = (uintptr_t)&far;
	int       r = -1;

	sem_init(o, 0, 1, 0);
	if (!strncmp(name, "pthread_barrier", 15))
		pthread_barrier_init(o, 0, 1, 0);
	else if (strncmp(name, "sem", 3))
		memset(object, 0, sizeof(object));
	if (!strcmp(name, "pthread_spin_lock"))
		pthread_spin_init(o, 0, 0, 0);
#define ONE(function) if (!strcmp(name, #function)) r = function(o, 0, 0, 0);
#define TIMED(function) if (!strcmp(name, #function)) r = function(o, at, 0, 0);
#define CLOCKED(function) if (!strcmp(name, #function)) r = function(o, 0, at, 0);
	ONE(pthread_mutex_lock) ONE(pthread_rwlock_rdlock) ONE(pthread_rwlock_wrlock) ONE(sem_wait)
	ONE(pthread_spin_lock) ONE(mtx_lock)
	TIMED(pthread_mutex_timedlock) TIMED(pthread_rwlock_timedrdlock) TIMED(pthread_rwlock_timedwrlock)
	TIMED(sem_timedwait) TIMED(mtx_timedlock)
	CLOCKED(pthread_rwlock_clockrdlock) CLOCKED(pthread_rwlock_clockwrlock) CLOCKED(sem_clockwait)
	if (!strcmp(name, "pthread_barrier_wait")) /* of one thread */
		r = pthread_barrier_wait(o, 0, 0, 0) == -1 ? 0 : -1;
	if (!strcmp(name, "pthread_mutex_clocklock")) { /* only a taken one goes the slow way */
		pthread_mutex_lock(o, 0, 0, 0);
		r = pthread_mutex_clocklock(o, 0, (uintptr_t)&past, 0) == 110 ? 0 : -1;
	}
#define UNLOCK(lock, unlock)                  \
	if (!strcmp(name, #unlock)) {         \
		lock(o, 0, 0, 0);             \
		r = unlock(o, 0, 0, 0);       \
	}
	UNLOCK(pthread_mutex_lock, pthread_mutex_unlock)
	UNLOCK(pthread_rwlock_rdlock, pthread_rwlock_unlock)
	UNLOCK(mtx_lock, mtx_unlock)
	if (!strcmp(name, "pthread_once"))
		r = pthread_once(o, (uintptr_t)routine, 0, 0);
	if (!strcmp(name, "call_once"))
		r = (call_once(o, (uintptr_t)routine, 0, 0), 0);
#define JOIN(function, ...)                                             \
	if (!strcmp(name, #function))                                   \
		r = pthread_create(&thread, NULL, nothing, NULL) ? -1 : function(__VA_ARGS__);
	JOIN(pthread_join, thread, NULL)
	JOIN(pthread_timedjoin_np, thread, 0, at, 0)
	JOIN(pthread_clockjoin_np, thread, 0, 0, at)
	if (!strcmp(name, "thrd_join"))
		r = thrd_create(&thread, nothing_c11, NULL) ? -1 : thrd_join(thread, NULL);
	return r == 0 ? 1 : r < 0 ? 0 : -1;
}

static int
call_any_cond(const char *name)
{
#ifdef HOOKS_COND_OLD_VERSION
	if (!strcmp(name, "pthread_cond_wait_2_2_5"))
		return call_cond(old_wait, old_broadcast, 0);
	if (!strcmp(name, "pthread_cond_timedwait_2_2_5"))
		return call_cond(old_timedwait, old_broadcast, 0);
#endif
	if (!strcmp(name, "pthread_cond_wait"))
		return call_cond(pthread_cond_wait, pthread_cond_broadcast, 0);
	if (!strcmp(name, "pthread_cond_timedwait"))
		return call_cond(pthread_cond_timedwait, pthread_cond_broadcast, 0);
	if (!strcmp(name, "pthread_cond_clockwait"))
		return call_cond(pthread_cond_clockwait, pthread_cond_broadcast, 1);
	if (!strcmp(name, "cnd_wait"))
		return call_cond(cnd_wait, cnd_broadcast, 0);
	if (!strcmp(name, "cnd_timedwait"))
		return call_cond(cnd_timedwait, cnd_broadcast, 0);
	return 0;
}

/* ---- system calls; results and errors come through as they are ---- */

/* As they are declared where results are narrower than a word. */
#define CALL_ARGUMENTS uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t
#define CALLS(X)                                                                                       \
	X(readv) X(writev) X(recv) X(recvfrom) X(recvmsg) X(recvmmsg) X(send) X(sendto) X(sendmsg)     \
	X(sendmmsg) X(accept) X(accept4) X(connect) X(poll) X(ppoll)                                  \
	X(epoll_wait) X(epoll_pwait) X(nanosleep) X(clock_nanosleep) X(__read_chk) X(__recv_chk)       \
	X(__recvfrom_chk) X(__poll_chk) X(__ppoll_chk) X(mmap) X(mmap64) X(munmap) X(mremap)
#define DECLARE_CALL(function) extern int function(CALL_ARGUMENTS) WEAK;
CALLS(DECLARE_CALL)

static int
call_call(const char *name)
{
	struct { void *base; size_t size; } vector;
	struct { void *name; unsigned name_size; void *vectors; size_t count; void *control; size_t control_size; int flags;
		unsigned got; } message = { 0, 0, &vector, 1, 0, 0, 0, 0 };
	struct { int fd; short events, got; } waiting;
	struct seconds none = { 0, 0 }, little = { 0, 1 };
	uintptr_t z = (uintptr_t)&none, l = (uintptr_t)&little, m = (uintptr_t)&message, v = (uintptr_t)&vector, b, p, i, o;
	char      byte[64] = "x";
	int       pair[2] = { -1, -1 }, r = -2, wanted = 1, err = 0;

	if (syscall(SYS_socketpair, 1, 1, 0, pair))
		return -1;
	syscall(SYS_write, pair[0], byte, 1);
	vector.base = byte;
	vector.size = 1;
	waiting.fd = pair[1];
	waiting.events = 1;
	b = (uintptr_t)byte, p = (uintptr_t)&waiting, i = (uintptr_t)pair[1], o = (uintptr_t)pair[0];
	errno = 0;
#define CALL(function, want, error, ...)             \
	if (!strcmp(name, #function)) {              \
		r = (int)function(__VA_ARGS__);      \
		err = errno;                         \
		wanted = want;                       \
		if (err != error)                    \
			wanted = -3;                 \
	}
	CALL(read, 1, 0, pair[1], byte, 1)
	CALL(write, 1, 0, pair[0], byte, 1)
	CALL(usleep, 0, 0, 1)
	CALL(sleep, 0, 0, 0)
	CALL(fsync, -1, EINVAL, pair[0])
	CALL(fdatasync, -1, EINVAL, pair[0])
	CALL(readv, 1, 0, i, v, 1, 0, 0, 0, 0)
	CALL(writev, 1, 0, o, v, 1, 0, 0, 0, 0)
	CALL(recv, 1, 0, i, b, 1, 0, 0, 0, 0)
	CALL(recvfrom, 1, 0, i, b, 1, 0, 0, 0, 0)
	CALL(recvmsg, 1, 0, i, m, 0, 0, 0, 0, 0)
	CALL(recvmmsg, 1, 0, i, m, 1, 0, 0, 0, 0)
	CALL(send, 1, 0, o, b, 1, 0, 0, 0, 0)
	CALL(sendto, 1, 0, o, b, 1, 0, 0, 0, 0)
	CALL(sendmsg, 1, 0, o, m, 0, 0, 0, 0, 0)
	CALL(sendmmsg, 1, 0, o, m, 1, 0, 0, 0, 0)
	CALL(accept, -1, EINVAL, i, 0, 0, 0, 0, 0, 0)
	CALL(accept4, -1, EINVAL, i, 0, 0, 0, 0, 0, 0)
	CALL(connect, -1, EBADF, 999999, b, 64, 0, 0, 0, 0)
	CALL(poll, 1, 0, p, 1, 0, 0, 0, 0, 0)
	CALL(ppoll, 1, 0, p, 1, z, 0, 0, 0, 0)
	CALL(select, 0, 0, 0, NULL, NULL, NULL, (void *)z)
	CALL(pselect, 0, 0, 0, NULL, NULL, NULL, (void *)z, NULL)
	CALL(epoll_wait, -1, EBADF, 999999, b, 1, 0, 0, 0, 0)
	CALL(epoll_pwait, -1, EBADF, 999999, b, 1, 0, 0, 0, 0)
	CALL(nanosleep, 0, 0, l, 0, 0, 0, 0, 0, 0)
	CALL(clock_nanosleep, 0, 0, 0, 0, l, 0, 0, 0, 0)
	CALL(__read_chk, 1, 0, i, b, 1, 64, 0, 0, 0)
	CALL(__recv_chk, 1, 0, i, b, 1, 64, 0, 0, 0)
	CALL(__recvfrom_chk, 1, 0, i, b, 1, 64, 0, 0, 0)
	CALL(__poll_chk, 1, 0, p, 1, 0, 8, 0, 0, 0)
	CALL(__ppoll_chk, 1, 0, p, 1, z, 0, 8, 0, 0)
	CALL(mmap, -1, EINVAL, 0, 0, 3, 0x22, (uintptr_t)-1, 0, 0)
	CALL(mmap64, -1, EINVAL, 0, 0, 3, 0x22, (uintptr_t)-1, 0, 0)
	CALL(munmap, -1, EINVAL, 1, 4096, 0, 0, 0, 0, 0)
	CALL(mremap, -1, EINVAL, 1, 4096, 8192, 0, 0, 0, 0)
	syscall(SYS_close, pair[0]);
	syscall(SYS_close, pair[1]);
	return r == -2 ? 0 : r == wanted ? 1 : -1;
}

/* A block of a kind that delete may get with an alignment. */
static void *
block(void)
{
	return aligned_alloc(64, 64);
}

static int
call_malloc_family(const char *name)
{
	void *p = NULL;

	if (!strcmp(name, "malloc"))
		p = malloc(100);
	else if (!strcmp(name, "calloc"))
		p = calloc(10, 10);
	else if (!strcmp(name, "realloc"))
		p = realloc(NULL, 100);
	else if (!strcmp(name, "reallocarray"))
		p = reallocarray(NULL, 10, 10);
	else if (!strcmp(name, "posix_memalign"))
		p = posix_memalign(&p, 64, 100) ? NULL : p;
	else if (!strcmp(name, "aligned_alloc"))
		p = aligned_alloc(64, 128);
	else if (!strcmp(name, "memalign"))
		p = memalign(64, 100);
	else if (!strcmp(name, "valloc"))
		p = valloc(100);
	else if (!strcmp(name, "pvalloc"))
		p = pvalloc(100);
	else if (!strcmp(name, "malloc_usable_size")) {
		p = malloc(100);
		if (malloc_usable_size(p) < 100)
			return -1;
	}
	if (p) {
		memset(p, 1, 100);
		free(p);
		return 1;
	}
	if (!strcmp(name, "free"))
		free(malloc(10));
	else if (!strcmp(name, "cfree") && cfree)
		cfree(malloc(10));
	else if (!strcmp(name, "free_sized") && free_sized)
		free_sized(malloc(10), 10);
	else if (!strcmp(name, "free_aligned_sized") && free_aligned_sized)
		free_aligned_sized(aligned_alloc(64, 64), 64, 64);
	else
		return 0;
	return 1;
}

static int
call_signal(const char *name)
{
	struct sigaction act;
	sigset_t         set;

	if (!strcmp(name, "pthread_sigmask"))
		return pthread_sigmask(SIG_BLOCK, NULL, &set) ? -1 : 1;
	if (!strcmp(name, "sigprocmask"))
		return sigprocmask(SIG_BLOCK, NULL, &set) ? -1 : 1;
	if (!strcmp(name, "sigaction"))
		return sigaction(SIGUSR2, NULL, &act) ? -1 : 1;
	if (!strcmp(name, "signal"))
		return signal(SIGUSR2, SIG_DFL) == SIG_DFL ? 1 : -1;
	return 0;
}

/* 1 called, 0 there is no such function here, -1 it answered wrongly. */
int
NAME(CALLER)(const char *name)
{
	uintptr_t t;
	void     *p;
	int       r;

#define NEW_CALL(operator)                                                     \
	if (!strcmp(name, #operator)) {                                        \
		if (!operator)                                                 \
			return 0;                                              \
		/* align_val_t is the second argument, nothrow_t & the last */ \
		p = operator(100, strstr(name, "align") ? 64 : (uintptr_t)&t, (uintptr_t)&t); \
		if (!p || (strstr(name, "align") && (uintptr_t)p % 64))        \
			return -1;                                             \
		memset(p, 1, 100);                                             \
		free(p);                                                       \
		return 1;                                                      \
	}
#define DELETE_CALL(operator)                                                  \
	if (!strcmp(name, #operator)) {                                        \
		if (!operator)                                                 \
			return 0;                                              \
		/* the size, if it takes one, comes before the alignment */    \
		operator(block(), 64, 64);                                     \
		return 1;                                                      \
	}
	HOOKS_NEW_NAMES(NEW_CALL)
	HOOKS_DELETE_NAMES(DELETE_CALL)
	if (!strcmp(name, "pthread_create"))
		return pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL) ? -1 : 1;
	if (!strcmp(name, "thrd_create"))
		return thrd_create(&t, nothing_c11, NULL) || thrd_join(t, NULL) ? -1 : 1;
	if (strstr(name, "cond_") || strstr(name, "cnd_"))
		return call_any_cond(name);
	if (call_malloc_family(name) == 1)
		return 1;
	r = call_call(name);
	if (!r)
		r = call_signal(name);
	return r ? r : call_wait(name);
}
