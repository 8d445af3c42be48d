/*
 * window.c - what one wall-clock window has counted, and the profile it becomes.
 *
 *     looks at blocked threads:  stack, labels -> thread-ticks
 *     looks at running threads:  tid, labels   -> thread-ticks --+
 *     CPU samples:        tid, stack, labels   -> periods -------+--> shared out by these
 *
 * A running thread's ticks go to its own CPU stacks, in their proportion: so its time is
 * that of the wall, waiting for a processor included, as it is for the blocked ones, and
 * a thread that the scheduler neglects is not made up for by one that it prefers.  A
 * thread that was seen to run, but had no CPU sample, is [running].
 *
 * What a stranger would get wrong: ticks become time by the window's real duration, so
 * that all samples together are the number of threads times the duration, however late
 * ticks were.
 *
 * Tests: tests/wall/test_wall.c, tests/wall/fgprof.t.
 */
#include <config.h>

#include "window.h"

#include <errno.h>
#include <stdbool.h>

#include "clock.h"
#include "collector.h"
#include "labels/thread.h"
#include "pages.h"
#include "sort.h"
#include "stack_table.h"
#include "unwind.h"
#include "wall.h"

void
wall_window_count(struct wall_window *w, const struct wall_look *looks, size_t n, double threads)
{
	w->looks += n;
	for (size_t i = 0; i < n; i++) {
		double   weight = looks[i].ticks * threads;
		uint32_t tid = looks[i].stack ? 0 : (uint32_t)looks[i].tid;

		if (!window_counts_add(&w->counts, looks[i].stack, looks[i].labels, tid, weight))
			w->lost += weight;
	}
}

struct wall_window *
wall_window_new(void)
{
	return pages_map(sizeof(struct wall_window));
}

void
wall_window_free(struct wall_window *w)
{
	window_counts_close(&w->counts);
	pages_unmap(w, sizeof(*w));
}

void
wall_window_forget(struct wall_window *w)
{
	window_counts_forget(&w->counts);
	pages_unmap(w, sizeof(*w));
}

/* ---- the profile ---- */

struct making {
	struct profile profile;
	double         ns_per_tick;
	double         count_left, ns_left; /* of rounding, for the next sample */
};

static int64_t
rounded(double exact, double *left)
{
	int64_t whole = (int64_t)(exact + *left + 0.5);

	*left += exact - (double)whole;
	return whole;
}

/* Borrows the references. */
static int
sample_add(struct making *m, uint32_t stack, uint32_t labels, double weight)
{
	struct profile_sample s = { .stack = stack, .labels = labels };

	s.values[0] = rounded(weight, &m->count_left);
	s.values[1] = rounded(weight * m->ns_per_tick, &m->ns_left);
	if (s.values[0] <= 0 && s.values[1] <= 0)
		return 0;
	stack_table_ref(stack);
	labels_ref(labels);
	return profile_add(&m->profile, &s);
}

/* By thread; the looks at one come before its CPU stacks. */
static bool
is_before(const struct window_count *a, const struct window_count *b)
{
	return a->tid != b->tid ? a->tid < b->tid : a->stack < b->stack;
}

HEAP_SORT(sort, struct window_count, is_before)

/* One thread: first the looks that saw it run, by labels, then its CPU stacks. */
static int
share_out(struct making *m, const struct window_count *all, size_t count)
{
	double seen = 0, sum = 0;
	size_t looks = 0;
	int    err = 0;

	for (; looks < count && !all[looks].stack; looks++)
		seen += all[looks].weight;
	for (size_t i = looks; i < count; i++)
		sum += all[i].weight;
	if (sum <= 0)
		for (size_t i = 0; i < looks && !err; i++)
			err = sample_add(m, STACK_PSEUDO_RUNNING, all[i].labels, all[i].weight);
	/* Never seen to run: other looks stand for it. */
	for (size_t i = looks; looks > 0 && i < count && !err; i++)
		err = sample_add(m, all[i].stack, all[i].labels, seen * all[i].weight / sum);
	return err;
}

/* Those of threads, behind the n in all.  How many there are then. */
static size_t
threads_of(const struct window_counts *t, struct window_count *all, size_t n)
{
	for (size_t i = 0; i < t->table.size; i++) {
		const struct window_count *c = window_counts_at(t, i);

		if (c && c->tid)
			all[n++] = *c;
	}
	return n;
}

static int
running_add(struct making *m, const struct wall_window *w)
{
	size_t               cpu = w->cpu ? w->cpu->counts.table.count : 0, room = w->counts.table.count + cpu + 1;
	size_t               n, end;
	struct window_count *all = pages_map(room * sizeof(*all));
	int                  err = 0;

	if (!all)
		return -ENOMEM;
	n = threads_of(&w->counts, all, 0);
	if (cpu)
		n = threads_of(&w->cpu->counts, all, n);
	sort(all, n);
	for (size_t i = 0; i < n && !err; i = end) {
		for (end = i + 1; end < n && all[end].tid == all[i].tid; end++)
			;
		err = share_out(m, all + i, end - i);
	}
	pages_unmap(all, room * sizeof(*all));
	return err;
}

static void
comments(const struct wall_window *w, struct profile *p)
{
	double   seconds = (double)p->duration_ns / 1e9;
	/* No %f: it follows the daemon's locale. */
	unsigned rate = seconds > 0 ? (unsigned)((double)w->taken / seconds * 10 + 0.5) : 0;
	unsigned share = seconds > 0 ? (unsigned)((double)w->sampler_ns / seconds / 1e4 + 0.5) : 0;

	profile_comment(p, "threads: %zu at the end, the library's own left out", w->threads);
	profile_comment(p, "rate: %d Hz, reached %u.%u Hz; looks at threads: %llu", WALL_HZ, rate / 10, rate % 10,
			(unsigned long long)w->looks);
	profile_comment(p, "sampler: %u.%03u %% of a processor", share / 1000, share % 1000);
	if (w->lost > 0)
		profile_comment(p, "lost samples: %llu", (unsigned long long)w->lost);
	labels_comment(p);
	profile_comment(p, "unwinder: %s", unwind_name());
	if (!w->cpu)
		profile_comment(p, "where threads run is not known: %s", w->cpu_why);
	else if (w->cpu->no_room)
		profile_comment(p, "where threads ran is not known of %llu samples of them: no room", (unsigned long long)w->cpu->no_room);
}

int
wall_window_profile(const struct wall_window *w, bool idle, struct profile *ret)
{
	struct making   m = { 0 };
	struct profile *p = &m.profile;
	int             err = 0;

	collector_profile(&collect_fgprof, p);
	p->period_type = (struct profile_type){ "wallclock", "nanoseconds" };
	p->period = CLOCK_NS_PER_S / WALL_HZ;
	p->time_ns = w->window.time_ns;
	p->duration_ns = w->window.end_ns - w->window.begin_ns;
	p->lost = (uint64_t)w->lost;
	m.ns_per_tick = w->ticks ? (double)p->duration_ns / (double)w->ticks : 0;
	comments(w, p);
	if (!idle)
		profile_comment(p, "idle=0: what waits is left out");
	for (size_t i = 0; idle && i < w->counts.table.size && !err; i++) {
		const struct window_count *c = window_counts_at(&w->counts, i);

		if (c && c->stack)
			err = sample_add(&m, c->stack, c->labels, c->weight);
	}
	if (!err)
		err = running_add(&m, w);
	return profile_done(p, err, ret);
}
