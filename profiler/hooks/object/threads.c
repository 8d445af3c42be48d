/*
 * threads.c - pthread_create and thrd_create: the core hears of new threads.
 *
 * It may put its own routine before the daemon's, which is all that happens:
 * attributes, the id and every error come from the real function.  The slow way is
 * in cold.c, which knows the caller's registers.
 */
#include "object.h"

int
hook_pthread_create(void *thread, const void *attributes, void *routine, void *arg)
{
	if (LIKELY(hooks_self.thread_state == HOOKS_OFF))
		return NEXT(pthread_create)(thread, attributes, routine, arg);
	return cold_pthread_create(thread, attributes, routine, arg);
}

int
hook_thrd_create(void *thread, void *routine, void *arg)
{
	if (LIKELY(hooks_self.thread_state == HOOKS_OFF))
		return NEXT(thrd_create)(thread, routine, arg);
	return cold_thrd_create(thread, routine, arg);
}

EXPORT(pthread_create);
EXPORT(thrd_create);
