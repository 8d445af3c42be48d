/*
 * heap.h - which call sites hold and have allocated memory, sampled per byte.
 */
#ifndef COLLECT_HEAP_HEAP_H
#define COLLECT_HEAP_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "profile.h"

/*
 * heap_set_rate - mean bytes between samples; 0 switches off
 *
 *   returns  0, -ENOTSUP where allocations cannot be seen (heap_status() says why:
 *            the profiler runs on without), -ENOMEM
 *   threads  any, any time; not from signal handlers
 */
int      heap_set_rate(uint64_t bytes);
uint64_t heap_rate(void); /* 0: off */
/* Asks the loader what heap_set_rate() will have to know, and switches nothing on.  Later a thread may hang in a constructor
 * with the loader's lock, and whoever sets a rate would wait for it.  The same returns and threads. */
int      heap_foresee(void);

/* The heap profile, or the one of allocs.  0 and a valid profile in every state; after -ENOMEM, or
 * -EBUSY (a fork that would not end), *ret is as it was. */
int      heap_snapshot(struct profile *ret, bool allocs);

/* In a forked child: sampling is off until the next heap_set_rate(); blocks of the
 * parent's are freed and shown as before.  Happens by itself after fork(). */
void heap_forked(void);
/* Is this a child that did not notice: of _Fork(), or of a fork that began before there were
 * handlers for it?  True once; then it is as above, and does not wait for a lock that another
 * thread of its parent held.  Before each use of that lock. */
bool heap_fork_look(void);

/* "" or why heap sampling is off or restricted, for the index and comments.
 * Constant text or a buffer that is written once. */
const char *heap_status(void);

/* Draws of threads that have not sampled yet start from this: for tests. */
void heap_set_seed(uint64_t seed);
/* Allocations that should have been samples and are not: no memory, re-entered. */
uint64_t heap_lost(void);
/* Samples since the process began, with those that were lost for want of memory. */
uint64_t heap_taken(void);

/* What a profile says about how it came to be. */
struct heap_facts {
	int64_t  since_ns;  /* UTC, first on in this process or, before it was forked, its parent; 0: never */
	bool     resumed;   /* off since then, and on again */
	uint64_t rate;      /* now, or when it was last on, or the default */
	uint64_t truncated; /* stacks that end early */
};

void heap_facts(struct heap_facts *ret);

#endif
