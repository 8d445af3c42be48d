/*
 * waits.c - locks and other waits of pthreads and C11: what every call runs through.
 *
 * Off, a call costs one predicted branch and the jump to the real function.  On, it
 * first tries without waiting; only where that fails does it go to waits_cold.c, which
 * asks the core to time the wait.  An unlock looks at one word that says whether anybody
 * waits for any lock, which while off says that nobody does, and then at the lock's bucket.
 *
 *     lock ── off ──────────> real lock            unlock ── nobody waits ─> real unlock
 *          └── on ── try ───> got it                      └── perhaps ────> cold, core
 *                     └ busy > cold ──> core
 *
 * What a stranger would get wrong:
 * - Trying is not always the same as locking at once.  A robust mutex answers
 *   EOWNERDEAD when it is ours now, so only EBUSY means that it is not.  A semaphore
 *   and a join are cancellation points even if they do not wait.  Read-write locks and
 *   semaphores refuse a bad timeout before they look at the lock, mutexes after.
 * - A priority-inheriting mutex refuses some clocks, also when it is free: there the
 *   attempt is the same call with a time that has passed.
 * - trylock itself is not hooked: it never waits.
 * - pthread_once() is answered here where it has run, on or off.
 * - A plain mutex is taken here, where the core has found that it may be (struct hooks_plain_mutex).
 * - The real functions are there from the first instruction on (early_*), since the
 *   loader and constructors lock before anything of ours has run.
 *
 * Tests: tests/hooks/interposition.t, tests/hooks/cost.t, tests/waits/test_waits.c, tests/waits/test_guest.c.
 */
#include "object.h"

#include <errno.h>
#include <time.h>

/* <threads.h> would declare the names that are defined here. */
enum { thrd_success, thrd_busy, thrd_error };

#define OFF LIKELY(hooks_self.wait_state == HOOKS_OFF)
#define TRY(name) ((hooks_try_fn *)hooks_self.tries[HOOKS_TRY_##name])
#define WAITED_FOR(lock) UNLIKELY(hooks_waiting[HOOKS_WAITING_BUCKET(lock)] != 0)

typedef int hooks_try_fn(uintptr_t object);

static int
time_is_valid(uintptr_t timeout)
{
	long ns = ((const struct timespec *)timeout)->tv_nsec;

	return ns >= 0 && ns < 1000000000;
}

static int
clock_is_valid(uintptr_t id)
{
	return (int)id == CLOCK_REALTIME || (int)id == CLOCK_MONOTONIC;
}

#define LOCK(name, attempt, busy)                          \
	int hook_##name(uintptr_t a)                       \
	{                                                  \
		int r;                                     \
                                                           \
		if (OFF)                                   \
			return NEXT(name)(a);              \
		r = TRY(attempt)(a);                       \
		if (LIKELY(r != (busy)))                   \
			return r;                          \
		return cold_##name(a);                     \
	}                                                  \
	EXPORT(name);

#define TIMEDLOCK(name, attempt, busy, sound)              \
	int hook_##name(uintptr_t a, uintptr_t b)          \
	{                                                  \
		int r;                                     \
                                                           \
		if (OFF || !(sound))                       \
			return NEXT(name)(a, b);           \
		r = TRY(attempt)(a);                       \
		if (LIKELY(r != (busy)))                   \
			return r;                          \
		return cold_##name(a, b);                  \
	}                                                  \
	EXPORT(name);

#define CLOCKLOCK(name, attempt)                                           \
	int hook_##name(uintptr_t a, uintptr_t b, uintptr_t c)             \
	{                                                                  \
		int r;                                                     \
                                                                           \
		if (OFF || !clock_is_valid(b) || !time_is_valid(c))        \
			return NEXT(name)(a, b, c);                        \
		r = TRY(attempt)(a);                                       \
		if (LIKELY(r != EBUSY))                                    \
			return r;                                          \
		return cold_##name(a, b, c);                               \
	}                                                                  \
	EXPORT(name);

#define UNLOCK(name)                                                           \
	int hook_##name(uintptr_t a)                                           \
	{                                                                      \
		if (UNLIKELY(hooks_self.wait_any != HOOKS_OFF) && WAITED_FOR(a)) \
			return cold_##name(a);                                 \
		return NEXT(name)(a);                                          \
	}                                                                      \
	EXPORT(name);

/* Whose id it is, in the calling thread. */
static __thread struct {
	uint32_t known_as; /* hooks_self.plain_mutexes when it was learned */
	int      tid;
} self __attribute__((tls_model(TLS_MODEL))) = { .known_as = UINT32_MAX };

static __attribute__((noinline)) int
mutex_attempt(uintptr_t mutex)
{
	int      r = TRY(pthread_mutex_trylock)(mutex);
	uint32_t now = STATE(plain_mutexes);

	if (UNLIKELY(self.known_as != now) && now) {
		self.tid = hooks_self.thread_id();
		__atomic_signal_fence(__ATOMIC_RELEASE); /* a handler on this thread may lock, too */
		self.known_as = now;
	}
	return LIKELY(r != EBUSY) ? r : cold_pthread_mutex_lock(mutex);
}

int
hook_pthread_mutex_lock(uintptr_t a)
{
	struct hooks_plain_mutex *m = (struct hooks_plain_mutex *)a;

	if (OFF)
		return NEXT(pthread_mutex_lock)(a);
	if (UNLIKELY(self.known_as != hooks_self.plain_mutexes) || __atomic_load_n(&m->kind, __ATOMIC_RELAXED) != 0)
		return mutex_attempt(a);
	return LIKELY(hooks_plain_mutex_try(m, self.tid)) ? 0 : cold_pthread_mutex_lock(a);
}
EXPORT(pthread_mutex_lock);

LOCK(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, EBUSY)
LOCK(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, EBUSY)
LOCK(pthread_spin_lock, pthread_spin_trylock, EBUSY)
LOCK(mtx_lock, mtx_trylock, thrd_busy)
TIMEDLOCK(pthread_mutex_timedlock, pthread_mutex_trylock, EBUSY, 1)
TIMEDLOCK(mtx_timedlock, mtx_trylock, thrd_busy, 1)
TIMEDLOCK(pthread_rwlock_timedrdlock, pthread_rwlock_tryrdlock, EBUSY, time_is_valid(b))
TIMEDLOCK(pthread_rwlock_timedwrlock, pthread_rwlock_trywrlock, EBUSY, time_is_valid(b))
CLOCKLOCK(pthread_rwlock_clockrdlock, pthread_rwlock_tryrdlock)
CLOCKLOCK(pthread_rwlock_clockwrlock, pthread_rwlock_trywrlock)
UNLOCK(pthread_mutex_unlock)
UNLOCK(pthread_rwlock_unlock)
UNLOCK(mtx_unlock)

int
hook_pthread_mutex_clocklock(uintptr_t a, uintptr_t b, uintptr_t c)
{
	static const struct timespec passed = { 0, 0 };
	int                          r;

	if (OFF)
		return NEXT(pthread_mutex_clocklock)(a, b, c);
	r = NEXT(pthread_mutex_clocklock)(a, b, (uintptr_t)&passed);
	if (LIKELY(r != ETIMEDOUT))
		return r;
	return cold_pthread_mutex_clocklock(a, b, c);
}
EXPORT(pthread_mutex_clocklock);

/* ---- semaphores: a cancellation point, and errno ---- */

static int
sem_attempt(uintptr_t sem)
{
	int saved = errno;

	((void (*)(void))hooks_self.tries[HOOKS_TRY_pthread_testcancel])();
	if (TRY(sem_trywait)(sem) == 0)
		return 1;
	errno = saved;
	return 0;
}

int
hook_sem_wait(uintptr_t a)
{
	if (OFF)
		return NEXT(sem_wait)(a);
	return sem_attempt(a) ? 0 : cold_sem_wait(a);
}

int
hook_sem_timedwait(uintptr_t a, uintptr_t b)
{
	if (OFF || !time_is_valid(b))
		return NEXT(sem_timedwait)(a, b);
	return sem_attempt(a) ? 0 : cold_sem_timedwait(a, b);
}

int
hook_sem_clockwait(uintptr_t a, uintptr_t b, uintptr_t c)
{
	if (OFF || !clock_is_valid(b) || !time_is_valid(c))
		return NEXT(sem_clockwait)(a, b, c);
	return sem_attempt(a) ? 0 : cold_sem_clockwait(a, b, c);
}
EXPORT(sem_wait);
EXPORT(sem_timedwait);
EXPORT(sem_clockwait);

/* ---- joins ---- */

static int
join_attempt(uintptr_t thread, void **ret)
{
	((void (*)(void))hooks_self.tries[HOOKS_TRY_pthread_testcancel])();
	return ((int (*)(uintptr_t, void **))hooks_self.tries[HOOKS_TRY_pthread_tryjoin_np])(thread, ret);
}

int
hook_pthread_join(uintptr_t a, uintptr_t b)
{
	int r;

	if (OFF)
		return NEXT(pthread_join)(a, b);
	r = join_attempt(a, (void **)b);
	return r == EBUSY ? cold_pthread_join(a, b) : r;
}

int
hook_pthread_timedjoin_np(uintptr_t a, uintptr_t b, uintptr_t c)
{
	int r;

	if (OFF)
		return NEXT(pthread_timedjoin_np)(a, b, c);
	r = join_attempt(a, (void **)b);
	return r == EBUSY ? cold_pthread_timedjoin_np(a, b, c) : r;
}

int
hook_pthread_clockjoin_np(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
{
	int r;

	if (OFF || !clock_is_valid(c))
		return NEXT(pthread_clockjoin_np)(a, b, c, d);
	r = join_attempt(a, (void **)b);
	return r == EBUSY ? cold_pthread_clockjoin_np(a, b, c, d) : r;
}

/* Apart, as no call out of a function whose locals are known elsewhere is a jump. */
static __attribute__((noinline)) int
thrd_attempt(uintptr_t thread, int *ret)
{
	void *result;
	int   r = join_attempt(thread, &result);

	if (r)
		return r == EBUSY ? thrd_busy : thrd_error;
	if (ret)
		*ret = (int)(intptr_t)result;
	return thrd_success;
}

int
hook_thrd_join(uintptr_t a, uintptr_t b)
{
	int r;

	if (OFF)
		return NEXT(thrd_join)(a, b);
	r = thrd_attempt(a, (int *)b);
	return r == thrd_busy ? cold_thrd_join(a, b) : r;
}
EXPORT(pthread_join);
EXPORT(pthread_timedjoin_np);
EXPORT(pthread_clockjoin_np);
EXPORT(thrd_join);

/* ---- what has no attempt: the core times it all ---- */

#define WAIT_1(name)                                                       \
	int hook_##name(uintptr_t a)                                       \
	{                                                                  \
		return OFF ? NEXT(name)(a) : cold_##name(a);               \
	}
#define WAIT_2(name)                                                       \
	int hook_##name(uintptr_t a, uintptr_t b)                          \
	{                                                                  \
		return OFF ? NEXT(name)(a, b) : cold_##name(a, b);         \
	}
#define WAIT_3(name)                                                       \
	int hook_##name(uintptr_t a, uintptr_t b, uintptr_t c)             \
	{                                                                  \
		return OFF ? NEXT(name)(a, b, c) : cold_##name(a, b, c);   \
	}
#define WAIT_4(name)                                                                     \
	int hook_##name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)              \
	{                                                                                \
		return OFF ? NEXT(name)(a, b, c, d) : cold_##name(a, b, c, d);           \
	}

/* Until next.c has learned one of them; no control has this value. */
int hooks_once_done = -1, hooks_once_passed = -1;

/* OpenSSL calls it all the time, and mostly it has run.  In that case glibc's function would do nothing else. */
#define WAIT_ONCE(name)                                                                            \
	int hook_##name(uintptr_t a, uintptr_t b)                                                  \
	{                                                                                          \
		int control = __atomic_load_n((const int *)a, __ATOMIC_ACQUIRE);                   \
                                                                                                   \
		if (LIKELY(control == hooks_once_done))                                            \
			return 0;                                                                  \
		return OFF || control == hooks_once_passed ? NEXT(name)(a, b) : cold_##name(a, b); \
	}

WAIT_2(pthread_cond_wait)
WAIT_3(pthread_cond_timedwait)
WAIT_4(pthread_cond_clockwait)
WAIT_1(pthread_barrier_wait)
WAIT_ONCE(pthread_once)
WAIT_ONCE(call_once)
WAIT_2(cnd_wait)
WAIT_3(cnd_timedwait)
EXPORT(pthread_cond_clockwait);
EXPORT(pthread_barrier_wait);
EXPORT(pthread_once);
EXPORT(call_once);
EXPORT(cnd_wait);
EXPORT(cnd_timedwait);

HOOKS_OLD_ARGUMENTS(WAIT_2, WAIT_3)

#ifdef HOOKS_COND_VERSION
/* Two functions of one name: each reference keeps the one it was linked with. */
#define EXPORT_VERSION(function, name, version)                                                        \
	extern __typeof__(hook_##function) version_##function                                          \
		__attribute__((weak, alias("hook_" #function), visibility("default")));                \
	__asm__(".symver version_" #function "," #name version ",remove")

EXPORT_VERSION(pthread_cond_wait, pthread_cond_wait, "@@" HOOKS_COND_VERSION);
EXPORT_VERSION(pthread_cond_timedwait, pthread_cond_timedwait, "@@" HOOKS_COND_VERSION);
#ifdef HOOKS_SHARED
/* The agent's alone.  In a program, lld and mold take the versions off: there were two of one
 * name, and the first one found was everybody's, if it was the old one as well. */
EXPORT_VERSION(pthread_cond_wait_2_2_5, pthread_cond_wait, "@" HOOKS_COND_OLD_VERSION);
EXPORT_VERSION(pthread_cond_timedwait_2_2_5, pthread_cond_timedwait, "@" HOOKS_COND_OLD_VERSION);
#endif
#else
EXPORT(pthread_cond_wait);
EXPORT(pthread_cond_timedwait);
#endif
