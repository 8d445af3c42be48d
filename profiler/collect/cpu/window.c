/*
 * window.c - what one window has counted, and the profile it becomes.
 *
 * What it has no memory for counts as lost.
 *
 * Tests: tests/cpu/test_cpu.c, tests/cpu/test_guest.c.
 */
#include <config.h>

#include "window.h"

#include "collector.h"
#include "cpu/signal.h"
#include "labels/thread.h"
#include "pages.h"
#include "stack_table.h"
#include "unwind.h"

void
cpu_window_count(struct cpu_window *w, uint32_t tid, uint32_t stack, uint32_t labels, uint64_t periods)
{
	if (window_counts_add(&w->counts, stack, labels, w->by_thread ? tid : 0, (double)periods))
		w->periods += periods;
	else
		w->no_room += periods;
}

struct cpu_window *
cpu_window_new(void)
{
	return pages_map(sizeof(struct cpu_window));
}

void
cpu_window_free(struct cpu_window *w)
{
	window_counts_close(&w->counts);
	pages_unmap(w, sizeof(*w));
}

void
cpu_window_forget(struct cpu_window *w)
{
	window_counts_forget(&w->counts);
	pages_unmap(w, sizeof(*w));
}

int
cpu_window_copy(const struct cpu_window *w, struct cpu_window *to)
{
	*to = *w;
	to->counts = (struct window_counts){ 0 };
	return window_counts_copy(&w->counts, &to->counts);
}

static uint64_t
lost(const struct cpu_window *w)
{
	return w->unseen + w->blocked + w->no_room + w->overdue + w->window.lost;
}

static void
window_comments(const struct cpu_window *w, struct profile *p)
{
	char name[32];

	cpu_signal_name(w->signal_number, name, sizeof(name));
	profile_comment(p, "samples: %llu", (unsigned long long)(w->periods + lost(w)));
	profile_comment(p, "lost samples: %llu", (unsigned long long)lost(w));
	if (w->unseen)
		profile_comment(p, "%llu of them are of threads that %swere beginning or ending, or lived too short to be seen",
				(unsigned long long)w->unseen, w->no_slot_max ? "have no timer, " : "");
	if (w->blocked)
		profile_comment(p, "%llu of them are of threads that block %s", (unsigned long long)w->blocked, name);
	if (w->overdue)
		profile_comment(p, "%llu of them are of threads that no tick of the kernel has met: they work in step with it, or are "
				"deep in the kernel", (unsigned long long)w->overdue);
	if (w->window.lost)
		profile_comment(p, "%llu of them came while the buffer was full", (unsigned long long)w->window.lost);
	if (w->no_room)
		profile_comment(p, "%llu of them found no memory for their stack", (unsigned long long)w->no_room);
	if (w->under_way)
		profile_comment(p, "samples that came after its end: %llu", (unsigned long long)w->under_way);
	profile_comment(p, "truncated stacks: %llu", (unsigned long long)w->truncated);
	profile_comment(p, "unwinder: %s", unwind_name());
	profile_comment(p, "signal: %s", name);
	profile_comment(p, "mean handler: %llu ns of wall time", (unsigned long long)cpu_signal_mean_ns());
	profile_comment(p, "longest handler: %llu ns", (unsigned long long)cpu_signal_longest_ns());
	if (cpu_signal_stuck())
		profile_comment(p, "a handler has not ended: its memory is kept");
	labels_comment(p);
	if (w->no_slot_max)
		profile_comment(p, "%u threads not sampled: %s", w->no_slot_max, w->no_slot_why);
	if (w->blocking_max)
		profile_comment(p, "%u threads not sampled: they block %s; their time is [lost samples]",
				w->blocking_max, name);
}

static int
sample_add(struct profile *p, const struct window_count *c, int64_t period_ns)
{
	struct profile_sample s = { .stack = c->stack, .labels = c->labels };

	s.values[0] = (int64_t)c->weight;
	s.values[1] = s.values[0] * period_ns;
	if (s.values[0] == 0)
		return 0;
	stack_table_ref(s.stack);
	labels_ref(s.labels);
	return profile_add(p, &s);
}

int
cpu_window_profile(const struct cpu_window *w, struct profile *ret)
{
	const struct window_count missing = { .stack = STACK_PSEUDO_LOST, .weight = (double)lost(w) };
	struct profile            p;
	int                       err = 0;

	collector_profile(&collect_profile, &p);
	p.period_type = p.types[1];
	p.period = w->period_ns;
	p.time_ns = w->window.time_ns;
	p.duration_ns = w->window.end_ns - w->window.begin_ns;
	p.lost = lost(w);
	p.lost_told = true;
	p.truncated = w->truncated;
	window_comments(w, &p);
	for (size_t i = 0; err == 0 && i < w->counts.table.size; i++) {
		const struct window_count *c = window_counts_at(&w->counts, i);

		if (c)
			err = sample_add(&p, c, w->period_ns);
	}
	if (err == 0)
		err = sample_add(&p, &missing, w->period_ns);
	return profile_done(&p, err, ret);
}
