/*
 * fork_signals.c - signals come to a thread that forks when it holds nothing of ours any more.
 *
 *     prepare: FORK_DESCRIPTORS blocks them ──▶ fork ──▶ its parent or child part notes the mask ──▶ all other ranks ──▶ here
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

void
fork_signals_later(const sigset_t *mask)
{
	memcpy(&per_thread.fork_mask, mask, sizeof(per_thread.fork_mask));
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

FORK_SLOT(FORK_SIGNALS, NULL, let_through, let_through);
