/*
 * first_tables.c - the first tables of a process are put off until somebody needs them.
 *
 * They take 2 ms and 9 million instructions in a program that has little but libc and us:
 * more than a program of the shell's kind runs for.  So profiling starts without
 * them.  refresh.c's thread makes them when the process has lived for a while, or when
 * it is woken by the first sample of a hook; a window and a dump make them before they
 * begin, since a handler cannot wait.
 *
 * What a stranger would get wrong: a hook waits here while the program holds any lock.  The
 * builder takes none of the program's, the loader's or malloc's, so that is only a matter of
 * time, and a bounded one: after it the stack is walked as if there were no tables.
 *
 * Tests: tests/unwind/test_refresh.c, tests/components/preload.t.  What a start costs: bench row start_on_us.
 */
#include <config.h>

#include "first_tables.h"

#include "futex.h"
#include "tables.h"
#include "unwind.h"
#include "by_tables.h"

#define WAIT_NS  500000000L
#define TURN_NS  10000000L /* then the thread is woken once more */

atomic_uint unwind_first_owed;

/* Somebody has waited in vain: nobody does so again. */
static atomic_bool given_up;

static void
settle(void)
{
	if (atomic_exchange(&unwind_first_owed, 0))
		futex_wake(&unwind_first_owed, INT_MAX);
}

void
unwind_first_owe(void)
{
	atomic_store(&given_up, false);
	atomic_store(&unwind_first_owed, 1);
}

int
unwind_first_make(void)
{
	int err;

	if (!unwind_first_is_owed())
		return 0;
	tables_stale(); /* what is built next is what later looks compare with */
	err = tables_build();
	if (err)
		unwinder_choose(unwinder_of(UNWIND_FRAME_POINTER));
	settle();
	return err;
}

void
unwind_first_forget(void)
{
	settle();
}

void
unwind_first_wait(void)
{
	long waited;

	if (atomic_load_explicit(&given_up, memory_order_relaxed))
		return;
	for (waited = 0; waited < WAIT_NS && unwind_first_is_owed(); waited += TURN_NS) {
		unwind_refresh_want_look();
		futex_wait(&unwind_first_owed, 1, TURN_NS);
	}
	if (waited >= WAIT_NS)
		atomic_store(&given_up, true);
}
