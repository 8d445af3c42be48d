/*
 * waits_calls.c - what each of the hooked calls is: by its name, and by its answer.
 *
 * Tests: tests/test_waits.c, tests/test_waits_guest.c.
 */
#include <config.h>

#include <errno.h>

#include "waits_parts.h"

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
#if defined(__x86_64__)
	case HOOKS_pthread_cond_wait_2_2_5:
	case HOOKS_pthread_cond_timedwait_2_2_5:
#endif
		return true;
	default:
		return false;
	}
}
