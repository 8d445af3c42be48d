/*
 * fork_signals.c - no signal comes to a thread that forks while it holds anything of ours.
 *
 *     prepare: here ──▶ all ranks that lock ──▶ fork ──▶ their parent or child parts ──▶ here
 *
 * A handler of the program may fork, or leave by siglongjmp(3).  With a lock held the one would wait for itself, and
 * the other would keep it.
 *
 * Tests: tests/base/fork_handlers.t.
 */
#include <config.h>

#include "fork.h"

#include <stdbool.h>
#include <string.h>

#include "our_mask.h"
#include "per_thread.h"

#define CANCEL 32 /* glibc's signal: our_mask.h */

bool
fork_signals_mask(uint64_t *ret_mask)
{
	sigset_t now;
	uint64_t blocked;

	if (!per_thread.forks)
		return false;
	our_mask_change(SIG_BLOCK, NULL, &now);
	memcpy(&blocked, &now, sizeof(blocked));
	if (!(blocked & OUR_MASK_BIT(CANCEL)))
		return false; /* a handler has set that mask: glibc never blocks its own signal.  SIG_BLOCK does not show */
	*ret_mask = per_thread.fork_mask;
	return true;
}

static void
hold_back(void)
{
	sigset_t before;

	our_mask_block(&before);
	memcpy(&per_thread.fork_mask, &before, sizeof(per_thread.fork_mask));
	per_thread.forks = true;
}

static void
let_through(void)
{
	uint64_t mask = per_thread.fork_mask;

	if (!per_thread.forks)
		return;
	per_thread.forks = false; /* before a handler forks */
	our_mask_change(SIG_SETMASK, &mask, NULL);
}

FORK_SLOT(FORK_SIGNALS, hold_back, let_through, let_through);
