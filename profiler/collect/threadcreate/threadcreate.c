/*
 * threadcreate.c - stacks that created threads: cumulative counts, and who made
 * each thread that runs.
 *
 *     pthread_create hook ─ stack ─┬─ sites: +1            (counted on the new thread,
 *                                  └─ creators[tid] = id    so that one which failed is not)
 *
 * What a stranger would get wrong:
 * - Go's own threadcreate has one garbage stack; these are real.
 * - A stack's id stays valid when the thread is gone, as its site keeps it: so
 *   creators[] needs no reference and can be read at any time.
 * - A tid may be used again as soon as its thread is gone, so the entry goes first.
 *   A thread that ends without coming back here (the raw system call exit) leaves
 *   its entry, which the next thread of that tid takes over.
 *
 * Tests: tests/hooks/test_thread_start.c.
 */
#include <config.h>

#include "threadcreate.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "collector.h"
#include "hidden_frames.h"
#include "our_thread.h"
#include "pages.h"
#include "stack_counts.h"
#include "stack_table.h"
#include "thread_events.h"
#include "thread_id.h"
#include "touched.h"
#include "unwind.h"

#define CREATORS   TOUCHED_ENTRIES /* threads that are remembered at once: half a MiB, touched as used */
#define PROBES_MAX 64

/* tid in the upper half, stack in the lower one: one store makes or ends an entry. */
typedef _Atomic uint64_t creator;

static struct stack_counts sites;
static creator *_Atomic creators;
static struct touched   creators_touched;
static _Atomic bool     on, no_memory;
static _Atomic uint64_t truncated;

/* ---- who created a thread ---- */

static creator *
creators_open(void)
{
	creator *fresh, *none = NULL;
	size_t   size = CREATORS * sizeof(*fresh);

	if (atomic_load(&creators))
		return atomic_load(&creators);
	fresh = pages_map_sparse(size);
	if (!fresh)
		return NULL;
	if (!atomic_compare_exchange_strong(&creators, &none, fresh))
		pages_unmap(fresh, size);
	return atomic_load(&creators);
}

/* tids are given out in turn: neighbours lie side by side, and rarely meet. */
static creator *
creator_of(pid_t tid)
{
	creator *table = atomic_load(&creators);

	for (unsigned i = 0; table && i < PROBES_MAX; i++) {
		creator *c = &table[((uint32_t)tid + i * 1021) % CREATORS];

		if (atomic_load(c) >> 32 == (uint32_t)tid)
			return c;
	}
	return NULL;
}

static void
creator_set(pid_t tid, uint32_t stack)
{
	uint64_t entry = (uint64_t)(uint32_t)tid << 32 | stack, none;
	creator *table = atomic_load(&creators), *c = creator_of(tid);

	if (c) { /* left by a thread that vanished */
		atomic_store(c, entry);
		return;
	}
	for (unsigned i = 0; table && i < PROBES_MAX; i++) {
		unsigned at = ((uint32_t)tid + i * 1021) % CREATORS;

		none = 0;
		touched_mark(&creators_touched, at);
		if (atomic_compare_exchange_strong(&table[at], &none, entry))
			return;
	}
}

uint32_t
threadcreate_creator(pid_t tid)
{
	creator *c = tid > 0 ? creator_of(tid) : NULL;
	uint64_t entry = c ? atomic_load(c) : 0;

	return entry >> 32 == (uint32_t)tid ? (uint32_t)entry : 0;
}

/* ---- from the hooks ---- */

static void
on_made(struct thread_events_note *ret, const struct unwind_regs *from)
{
	uintptr_t pcs[STACK_FRAMES_MAX];
	unsigned  count;
	int       cut = 0;

	if (!atomic_load(&on))
		return;
	count = hidden_frames_drop(pcs, unwind_capture(from, pcs, STACK_FRAMES_MAX, &cut));
	if (cut)
		atomic_fetch_add(&truncated, 1);
	ret->id = stack_table_add(pcs, count);
}

static void
on_started(const struct thread_events_note *note, const void *routine)
{
	(void)routine;
	if (!note->id)
		return;
	creator_set(thread_id_self(), stack_counts_add(&sites, note->id, SITES_ONE, 0));
}

static void
on_end(void)
{
	creator *c;

	if (!atomic_load(&creators))
		return;
	c = creator_of(thread_id_self());
	if (c)
		atomic_store(c, 0);
}

THREAD_EVENTS_SLOT(THREAD_EVENTS_CREATE, .made = on_made, .failed = stack_table_unref, .started = on_started, .end = on_end);

/* ---- on and off ---- */

int
threadcreate_start(void)
{
	if (*thread_events_status())
		return -ENOTSUP;
	no_memory = stack_counts_open(&sites) < 0 || !creators_open();
	if (no_memory)
		return -ENOMEM;
	atomic_store(&on, true);
	thread_events_watch(THREAD_EVENTS_CREATE, true);
	return 0;
}

void
threadcreate_stop(void)
{
	atomic_store(&on, false);
	thread_events_watch(THREAD_EVENTS_CREATE, false);
}

void
threadcreate_forked(void)
{
	creator *table = atomic_load(&creators);

	threadcreate_stop();
	atomic_store(&truncated, 0);
	stack_counts_forked(&sites);
	for (size_t i = 0; table && (i = touched_next(&creators_touched, i)) < CREATORS; i++)
		if (atomic_load_explicit(&table[i], memory_order_relaxed))
			atomic_store(&table[i], 0);
}

static const char *
threadcreate_status(void)
{
	return no_memory ? "threads are not seen being made: no memory for their tables" : thread_events_status();
}

static int
collect(const struct collector *c, const struct collect_params *params, struct product *ret)
{
	struct profile p;

	(void)params;
	collector_profile(c, &p);
	p.period_type = p.types[0];
	p.period = 1;
	p.time_ns = clock_ns(CLOCK_REALTIME);
	p.truncated = atomic_load(&truncated);
	if (*threadcreate_status())
		profile_comment(&p, "%s", threadcreate_status());
	else if (thread_events_missed())
		profile_comment(&p, "threadcreate: %lu threads were not seen, too many were made at once",
			thread_events_missed());
	ret->type = PRODUCT_PROFILE;
	return profile_done(&p, stack_counts_profile(&sites, &p), &ret->profile);
}

static size_t
count(const struct collector *c)
{
	(void)c;
	return (size_t)stack_counts_total(&sites);
}

static const char *
missing(void)
{
	if (atomic_load(&on) || count(NULL) > 0)
		return "";
	return *threadcreate_status() ? threadcreate_status() :
					"the making of threads is seen while the profiling server runs";
}

const struct collector collect_threadcreate = {
	.name = "threadcreate",
	.description = "Stack traces that led to the creation of new OS threads",
	.products = PRODUCT_PROFILE,
	.types = { { "threadcreate", "count" } },
	.snapshot = collect,
	.count = count,
	.status = threadcreate_status,
	.missing = missing,
	.creator = threadcreate_creator,
	.start = threadcreate_start,
	.stop = threadcreate_stop,
	.forked = threadcreate_forked,
};
