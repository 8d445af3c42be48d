/*
 * our_lock.c - a lock of ours that a fork takes, held by a thread of the program for a moment.
 *
 * Tests: tests/custom/test_custom.c, tests/base/fork_handlers.t.
 */
#include <config.h>

#include "our_lock.h"

#include "our_mask.h"
#include "per_thread.h"

void
our_lock_take(pthread_mutex_t *lock, sigset_t *ret_mask)
{
	if (!per_thread.ours)
		our_mask_block(ret_mask);
	pthread_mutex_lock(lock);
}

void
our_lock_release(pthread_mutex_t *lock, const sigset_t *mask)
{
	pthread_mutex_unlock(lock);
	if (!per_thread.ours)
		our_mask_restore(mask);
}
