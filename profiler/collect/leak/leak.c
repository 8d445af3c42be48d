/*
 * leak.c - goroutineleak: threads that wait for ever.
 *
 * Go finds goroutines that wait for what nobody can reach any more; in C it is known of locks only:
 * threads that wait for each other's, and those whose lock's holder has ended (dump/locks.c).
 *
 * What a stranger would get wrong: the index must be cheap, so its count is that of the last look,
 * as Go's is that of the last collection.
 *
 * Tests: tests/threads/deadlock.t.
 */
#include <config.h>

#include <stdatomic.h>

#include "dump/snapshot.h"

static _Atomic size_t found; /* by the last look */

static int
collect(const struct collector *c, const struct collect_params *params, struct product *ret)
{
	size_t n = 0;
	int    r = dump_snapshot(c, params, true, ret);

	if (r)
		return r;
	if (ret->type == PRODUCT_DUMP)
		n = ret->dump.count;
	else
		for (size_t i = 0; i < ret->profile.count; i++)
			n += (size_t)ret->profile.samples[i].values[0];
	atomic_store(&found, n);
	return 0;
}

static size_t
count(const struct collector *c)
{
	(void)c;
	return atomic_load(&found);
}

static void
forked(void)
{
	atomic_store(&found, 0);
}

const struct collector collect_goroutineleak = {
	.name = "goroutineleak",
	.description = "Stack traces of all leaked threads: they wait for each other's locks, or for the lock of one that has "
		"ended. Use debug=2 as a query parameter to export in the same format as an unrecovered panic of Go.",
	.products = PRODUCT_PROFILE | PRODUCT_DUMP,
	.types = { { "goroutineleak", "count" } },
	.snapshot = collect,
	.takes_own = true,
	.cannot = "threads cannot be listed",
	.count = count,
	.forked = forked,
};
