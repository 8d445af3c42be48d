/*
 * cpu_sampler.h - windows of CPU samples, as the collector of CPU time offers them to others.
 *
 * Found by COLLECTOR_WITH(cpu).  A window is under the lock of windows.h while it is open; afterwards
 * it is its owner's alone.
 */
#ifndef COLLECT_CPU_SAMPLER_H
#define COLLECT_CPU_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.h"
#include "window_counts.h"
#include "windows.h"

struct cpu_window {
	struct window        window;
	int64_t              period_ns;
	bool                 by_thread; /* counts are told apart by thread, too */
	int64_t              unseen_before_ns;
	uint64_t             truncated, periods;
	/* Lost: of threads that were not seen, of those that block the signal, for want of memory for
	 * another stack or count, of those that no tick has met for long; window.lost: the ring was full. */
	uint64_t             unseen, blocked, no_room, overdue;
	uint64_t             overdue_before; /* at its begin */
	uint64_t             under_way; /* others that passed in it, or before, and are told after its end */
	unsigned             no_slot_max, blocking_max; /* threads */
	struct window_counts counts; /* in periods; tid 0: not told apart, or not known any more */
	/* At its end. */
	int                  signal_number;
	const char          *no_slot_why; /* threads had no timer */
};

/* fn is called in the handler with each sample, leaf first, weight in periods. */
typedef void cpu_watch_fn(const uintptr_t *pcs, unsigned count, unsigned weight);

/* What the collector of CPU samples offers to others. */
struct cpu_sampler {
	/* 0 or a negative errno.  by_thread: the counts of each thread are told apart. */
	int         (*open)(struct cpu_window **ret, bool by_thread);
	/* Ends the window, which is then the caller's to read and to free. */
	void        (*end)(struct cpu_window *w);
	/* Another one, as it would be if it ended now: to read and to free.  0 or a negative errno. */
	int         (*so_far)(const struct cpu_window *w, struct cpu_window **ret);
	void        (*free)(struct cpu_window *w);
	void        (*cancel)(struct cpu_window *w); /* both */
	/* NULL ends it, but a call under way may still be at work.  One watcher at a time; none in a
	 * forked child. */
	void        (*watch)(cpu_watch_fn *fn);
	const char *(*status)(void); /* as the collector's */
};

#endif
