/*
 * cpu_window.c - what one window has counted, and the profile it becomes.
 *
 * A table from stack and labels (and thread) to periods, by open addressing, at most half full; a window of
 * hours holds each once.  Without memory to grow it fills up to the brim, and
 * then counts as lost what it has no place for.
 *
 * Tests: tests/test_cpu.c, tests/test_cpu_guest.c.
 */
#include <config.h>

#include "cpu_window.h"

#include <errno.h>

#include "cpu_signal.h"
#include "labels_thread.h"
#include "pages.h"
#include "stack_table.h"
#include "unwind.h"

#define COUNTS_FIRST 256 /* stacks of a window before it grows; a power of two */

static struct cpu_count *
count_find(struct cpu_count *counts, size_t capacity, const struct cpu_count *like)
{
	size_t i = ((like->stack ^ like->labels << 7 ^ like->tid * 0x9e3779b9U) * 2654435761U) & (capacity - 1);

	while (counts[i].stack &&
	       (counts[i].stack != like->stack || counts[i].labels != like->labels || counts[i].tid != like->tid))
		i = (i + 1) & (capacity - 1);
	return &counts[i];
}

static int
counts_grow(struct cpu_window *w)
{
	size_t        capacity = w->capacity ? w->capacity * 2 : COUNTS_FIRST, i;
	struct cpu_count *counts;

	counts = pages_map(capacity * sizeof(*counts));
	if (!counts)
		return -ENOMEM;
	for (i = 0; i < w->capacity; i++)
		if (w->counts[i].stack)
			*count_find(counts, capacity, &w->counts[i]) = w->counts[i];
	pages_unmap(w->counts, w->capacity * sizeof(*counts));
	w->counts = counts;
	w->capacity = capacity;
	return 0;
}

void
cpu_window_count(struct cpu_window *w, uint32_t tid, uint32_t stack, uint32_t labels, uint64_t periods)
{
	struct cpu_count like = { .stack = stack, .labels = labels, .tid = w->by_thread ? tid : 0 }, *c;

	if (w->used >= w->capacity / 2 && counts_grow(w) < 0 && w->used + 1 >= w->capacity) {
		w->lost += periods;
		w->no_room += periods;
		return;
	}
	c = count_find(w->counts, w->capacity, &like);
	if (!c->stack) {
		stack_table_ref(stack);
		labels_ref(like.labels);
		*c = like;
		w->used++;
	}
	c->periods += periods;
	w->periods += periods;
}

struct cpu_window *
cpu_window_new(void)
{
	struct cpu_window *w;

	w = pages_map(sizeof(*w));
	if (!w)
		return NULL;
	if (counts_grow(w) < 0) {
		munmap(w, sizeof(*w));
		return NULL;
	}
	return w;
}

void
cpu_window_free(struct cpu_window *w)
{
	size_t i;

	for (i = 0; i < w->capacity; i++)
		if (w->counts[i].stack) {
			stack_table_unref(w->counts[i].stack);
			labels_unref(w->counts[i].labels);
		}
	munmap(w->counts, w->capacity * sizeof(*w->counts));
	munmap(w, sizeof(*w));
}

static void
window_comments(const struct cpu_window *w, const struct cpu_facts *facts, struct profile *p)
{
	char name[32];

	cpu_signal_name(facts->signal_number, name, sizeof(name));
	profile_comment(p, "samples: %llu", (unsigned long long)(w->periods + w->lost));
	profile_comment(p, "lost samples: %llu", (unsigned long long)w->lost);
	if (w->unseen)
		profile_comment(p, "%llu of them are of threads that %swere beginning or ending, or lived too short to be seen",
				(unsigned long long)w->unseen, w->no_slot_max ? "have no timer, " : "");
	if (w->blocked)
		profile_comment(p, "%llu of them are of threads that block %s", (unsigned long long)w->blocked, name);
	if (w->ring_full)
		profile_comment(p, "%llu of them came while the buffer was full", (unsigned long long)w->ring_full);
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
		profile_comment(p, "%u threads not sampled: %s", w->no_slot_max, facts->no_slot_why);
	if (w->blocking_max)
		profile_comment(p, "%u threads not sampled: they block %s; their time is [lost samples]",
				w->blocking_max, name);
}

int
cpu_window_profile(const struct cpu_window *w, int64_t end_ns, const struct cpu_facts *facts, struct profile *ret)
{
	struct profile        p;
	struct profile_sample s = { 0 };
	size_t                i;
	int                   err = 0;

	profile_init(&p, "profile");
	p.types[0] = (struct profile_type){ "samples", "count" };
	p.types[1] = (struct profile_type){ "cpu", "nanoseconds" };
	p.type_count = 2;
	p.period_type = p.types[1];
	p.period = w->period_ns;
	p.time_ns = w->time_ns;
	p.duration_ns = end_ns - w->begin_ns;
	p.lost = w->lost;
	p.truncated = w->truncated;
	window_comments(w, facts, &p);
	for (i = 0; err == 0 && i <= w->capacity; i++) {
		s.stack = i < w->capacity ? w->counts[i].stack : STACK_PSEUDO_LOST;
		s.labels = i < w->capacity ? w->counts[i].labels : 0;
		s.values[0] = (int64_t)(i < w->capacity ? w->counts[i].periods : w->lost);
		s.values[1] = s.values[0] * w->period_ns;
		if (s.values[0] == 0)
			continue;
		stack_table_ref(s.stack);
		labels_ref(s.labels);
		err = profile_add(&p, &s);
	}
	if (err < 0) {
		profile_release(&p);
		return err;
	}
	profile_merge(&p);
	*ret = p;
	return 0;
}
