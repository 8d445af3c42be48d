/*
 * wake.c - wakes the thread that keeps the tables, and waits for the first ones.
 *
 * The first tables of a process are put off until somebody needs them.
 * They take 2 ms and 9 million instructions in a program that has little but libc and us:
 * more than a program of the shell's kind runs for.  So profiling starts without
 * them.  refresh.c's thread makes them when the process has lived for a while, or when
 * it is woken by the first sample of a hook; a window and a dump make them before they
 * begin, since a handler cannot wait.
 *
 * What a stranger would get wrong:
 * - The waker may be a signal handler, so waking is one futex call and only the first of
 *   many does it.
 * - A hook waits here while the program holds any lock.  The builder takes none of the
 *   program's, the loader's or malloc's, so that is only a matter of time, and a bounded one:
 *   after it the stack is walked as if there were no tables.
 *
 * Tests: tests/unwind/test_refresh.c, tests/components/preload.t.  What a start costs: bench row start_on_us.
 */
#include <config.h>

#include "wake.h"

#include "futex.h"

#define WAIT_NS  500000000L
#define TURN_NS  10000000L /* then the thread is woken once more */

struct unwind_thread unwind_thread;

/* Somebody has waited in vain: nobody does so again. */
static atomic_bool given_up;

void
unwind_wake(void)
{
	unsigned idle = UNWIND_IDLE;

	if (atomic_compare_exchange_strong(&unwind_thread.state, &idle, UNWIND_WANTED))
		futex_wake(&unwind_thread.state, 1);
}

void
unwind_wake_to_look(void)
{
	atomic_store_explicit(&unwind_thread.look, true, memory_order_relaxed);
	unwind_wake();
}

bool
unwind_wake_to_judge(void)
{
	if (!atomic_load(&unwind_thread.running) || atomic_load(&unwind_thread.spent))
		return false;
	futex_wake(&unwind_thread.state, 1); /* which is lost if it just goes to sleep: the waker comes again */
	return true;
}

void
unwind_first_owe(void)
{
	atomic_store(&given_up, false);
	atomic_store(&unwind_thread.first_owed, 1);
}

void
unwind_first_settle(void)
{
	if (atomic_exchange(&unwind_thread.first_owed, 0))
		futex_wake(&unwind_thread.first_owed, INT_MAX);
}

void
unwind_first_wait(void)
{
	long waited;

	if (atomic_load_explicit(&given_up, memory_order_relaxed))
		return;
	for (waited = 0; waited < WAIT_NS && unwind_first_is_owed(); waited += TURN_NS) {
		unwind_wake_to_look();
		futex_wait(&unwind_thread.first_owed, 1, TURN_NS);
	}
	if (waited >= WAIT_NS)
		atomic_store(&given_up, true);
}
