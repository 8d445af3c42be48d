/*
 * stack_lock.c - a lock that may be wanted inside malloc.
 *
 * What a stranger would get wrong:
 * - A signal handler of the daemon that mallocs may interrupt the holder on its own
 *   thread.  The thread-local `inside` tells; the inner call is refused at once.
 * - A wait for another thread is bounded for the same reason: that thread may sit in
 *   a handler which waits for us.
 * - A thread that forks from a handler while inside goes on with its work in both
 *   processes, so the lock is left alone then.
 * - A handler that leaves by siglongjmp(3) may take the holder away for good, in the middle of a change.  So one
 *   wait in vain is enough: until somebody gives the lock back, nobody waits as long again, but a fork longer.
 *
 * Why not pthread_mutex_t: a timed wait of one is by a clock that may be set, and
 * mutexes are what is to be looked at some day.
 *
 * Tests: tests/model/test_stack_table.c.
 */
#include <config.h>

#include "stack_lock.h"

#include <stdatomic.h>
#include <stdint.h>

#include "futex.h"

#define LOOKS 500 /* some microseconds: an add takes less than one */

enum { INSIDE_NOT, INSIDE_ADD, INSIDE_FORK };

static _Atomic uint32_t            lock;
static atomic_long                 in_vain; /* nanoseconds of the longest wait in vain since it was given back last */
static _Thread_local unsigned char inside __attribute__((tls_model("initial-exec")));

/* Its own function: nearly every call gets by without. */
static __attribute__((noinline)) bool
wait_for_it(long wait_ns)
{
	const long whole_ns = wait_ns;
	int64_t    until_ns;

	for (int i = 0; wait_ns == STACK_LOCK_AT_ONCE && i < LOOKS; i++)
		if (atomic_load_explicit(&lock, memory_order_relaxed) == FUTEX_FREE && futex_try(&lock))
			return true;
	if (wait_ns <= atomic_load_explicit(&in_vain, memory_order_relaxed))
		return false;
	until_ns = wait_ns > 0 ? clock_ns(CLOCK_MONOTONIC) + wait_ns : 0;
	while (wait_ns > 0 && !futex_try_again(&lock)) {
		futex_wait(&lock, FUTEX_WAITED_FOR, wait_ns);
		wait_ns = (long)(until_ns - clock_ns(CLOCK_MONOTONIC)); /* a signal ends a wait: each time less is left */
		if (wait_ns <= 0)
			atomic_store(&in_vain, whole_ns);
	}
	return wait_ns > 0;
}

bool
stack_lock_take(long wait_ns)
{
	if (inside)
		return false;
	inside = INSIDE_ADD;
	atomic_signal_fence(memory_order_seq_cst);
	if (futex_try(&lock) || wait_for_it(wait_ns))
		return true;
	inside = INSIDE_NOT;
	return false;
}

void
stack_lock_release(void)
{
	futex_unlock(&lock);
	if (atomic_load_explicit(&in_vain, memory_order_relaxed))
		atomic_store(&in_vain, 0);
	atomic_signal_fence(memory_order_seq_cst);
	inside = INSIDE_NOT;
}

void
stack_lock_fork_prepare(void)
{
	if (stack_lock_take(STACK_LOCK_FORK_NS))
		inside = INSIDE_FORK;
}

bool
stack_lock_fork_holds(void)
{
	return inside == INSIDE_FORK;
}

bool
stack_lock_fork_child(void)
{
	if (inside == INSIDE_FORK) {
		stack_lock_release();
		return true;
	}
	if (inside)
		return true;
	atomic_store(&lock, FUTEX_FREE);
	atomic_store(&in_vain, 0);
	return false;
}
