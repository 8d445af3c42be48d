/*
 * stop.c - what a stop waits for, and what gives up in the middle.
 *
 * A stop finishes what is queued, as long as that is little: from then on STOP_BYTES may
 * be read in all.  Who would read more gives up with -ECANCELED, writes no status, and is
 * looked at anew by the next start, as after a kill -9.  So a file of any size does not
 * outlive the graceful time.
 *
 * Bytes and not seconds, so that what is finished does not depend on the machine.
 * Documents are read all the same: they are short (GITOPS_DOCUMENT_MAX).
 *
 * Tests: tests/examples/test_gitops_stop.c, tests/examples/controllers.t.
 */
#include "gitops.h"

#include <stdatomic.h>

#define STOP_BYTES (64 << 20) /* some tenths of a second */
#define STEP_BYTES 4096       /* what a name costs that is looked at, or a small file */

static atomic_bool stopping;
static atomic_size_t spent;

void
gitops_stop(struct component *c)
{
	(void)c;
	atomic_store(&spent, 0);
	atomic_store(&stopping, true);
}

bool
gitops_go_on(size_t bytes)
{
	if (!atomic_load_explicit(&stopping, memory_order_relaxed))
		return true;
	if (atomic_load(&spent) > STOP_BYTES)
		return false;
	atomic_fetch_add(&spent, bytes < STEP_BYTES ? STEP_BYTES : bytes);
	return true;
}
