/*
 * calls.c - what each of the hooked calls is: by its name, by its answer, and, for an
 * unlock, by the lock.
 *
 * What a stranger would get wrong: mtx_t is a pthread_mutex_t in glibc.  What is read of a lock
 * is in <bits/struct_mutex.h> and <bits/struct_rwlock.h>, which programs are compiled with, so
 * it stays where it is.
 * Tests: tests/test_waits.c, tests/test_waits_guest.c, tests/test_waits_blame.c.
 */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>

#include "parts.h"

static bool
is_wrong_use(int r)
{
	return r == EINVAL || r == EDEADLK || r == EPERM || r == EAGAIN || r == ESRCH || r == ENOSYS;
}

/* Errors by errno, by number, and C11's own. */
bool
waits_was_wait(const struct hooks_wait *w, int r)
{
	switch (w->name) {
	case HOOKS_sem_wait:
	case HOOKS_sem_timedwait:
	case HOOKS_sem_clockwait:
		return r == 0 || !is_wrong_use(errno);
	case HOOKS_pthread_barrier_wait:
		return r == 0; /* the last to come did not wait */
	case HOOKS_mtx_lock:
	case HOOKS_mtx_timedlock:
	case HOOKS_cnd_wait:
	case HOOKS_cnd_timedwait:
	case HOOKS_thrd_join:
		return r != 2; /* thrd_error */
	default:
		return !is_wrong_use(r);
	}
}

/* What has a holder, who is to know of us. */
bool
waits_is_lock(uint32_t name)
{
	switch (name) {
	case HOOKS_pthread_mutex_lock:
	case HOOKS_pthread_mutex_timedlock:
	case HOOKS_pthread_mutex_clocklock:
	case HOOKS_pthread_rwlock_rdlock:
	case HOOKS_pthread_rwlock_wrlock:
	case HOOKS_pthread_rwlock_timedrdlock:
	case HOOKS_pthread_rwlock_timedwrlock:
	case HOOKS_pthread_rwlock_clockrdlock:
	case HOOKS_pthread_rwlock_clockwrlock:
	case HOOKS_mtx_lock:
	case HOOKS_mtx_timedlock:
		return true;
	default:
		return false;
	}
}

#define CASE(name) case HOOKS_##name:

/* What gives up a mutex, its second argument, while it waits. */
bool
waits_is_cond(uint32_t name)
{
	switch (name) {
	case HOOKS_pthread_cond_wait:
	case HOOKS_pthread_cond_timedwait:
	case HOOKS_pthread_cond_clockwait:
	case HOOKS_cnd_wait:
	case HOOKS_cnd_timedwait:
	HOOKS_OLD_NAMES(CASE)
		return true;
	default:
		return false;
	}
}

#define READERS_SHIFT  3 /* below are the phases */
#define KIND_ROBUST    16
#define KIND_INHERIT   32
#define OWNER_DIED     INT_MAX /* as owner, until pthread_mutex_consistent() */

bool
waits_mutex_is_released(uintptr_t mutex, int32_t tid)
{
	const pthread_mutex_t *m = (const pthread_mutex_t *)mutex;
	int                    kind = __atomic_load_n(&m->__data.__kind, __ATOMIC_RELAXED), type = kind & 3;
	int                    owner = __atomic_load_n(&m->__data.__owner, __ATOMIC_RELAXED);

	if (type != PTHREAD_MUTEX_RECURSIVE && type != PTHREAD_MUTEX_ERRORCHECK && !(kind & (KIND_ROBUST | KIND_INHERIT)))
		return true;
	if (owner != tid && owner != OWNER_DIED)
		return false;
	return type != PTHREAD_MUTEX_RECURSIVE || __atomic_load_n(&m->__data.__count, __ATOMIC_RELAXED) <= 1;
}

bool
waits_rwlock_is_released(uintptr_t rwlock, int32_t tid, int32_t leaving)
{
	const pthread_rwlock_t *l = (const pthread_rwlock_t *)rwlock;

	if (__atomic_load_n(&l->__data.__cur_writer, __ATOMIC_RELAXED) == tid)
		return true;
	return __atomic_load_n(&l->__data.__readers, __ATOMIC_RELAXED) >> READERS_SHIFT <= (unsigned)leaving;
}
