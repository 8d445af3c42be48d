/*
 * snapshot.c - a dump, as collectors of threads answer it: each thread by itself, or as a profile,
 * in which equal stacks of equal labels are one sample.
 *
 * What a stranger would get wrong: stacks of a dump are plain addresses until they are
 * tagged, which takes the lock of the stack table; so it is not done where all may hang.
 *
 * Tests: tests/threads/test_previous_dump.c, tests/threads/goroutine.t, tests/threads/deadlock.t.
 */
#include <config.h>

#include "snapshot.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "generations.h"
#include "labels/thread.h"
#include "stack_table.h"
#include "threads.h"
#include "unwind.h"

/* As many as one stack has: malloc waits for that lock. */
static void
tag_some(void *arg)
{
	struct dump *d = arg;
	uint16_t     tags[STACK_FRAMES_MAX];
	uintptr_t   *pcs = d->pcs + d->tagged;
	size_t       left = d->pc_count - d->tagged;
	unsigned     n = left < STACK_FRAMES_MAX ? (unsigned)left : STACK_FRAMES_MAX;

	d->tagged += n;
	if (generations_tag(pcs, n, tags))
		for (unsigned i = 0; i < n; i++)
			pcs[i] |= (uintptr_t)tags[i] << GENERATIONS_PC_BITS;
}

void
dump_tag(struct dump *d)
{
	while (d->tagged < d->pc_count && stack_table_exclusively(tag_some, d)) {}
}

/* ---- as a profile ---- */

static void
profile_describe(const struct dump *d, const struct collector *c, struct profile *p)
{
	collector_profile(c, p);
	p->period_type = p->types[0];
	p->period = 1;
	p->time_ns = clock_ns(CLOCK_REALTIME);
	profile_comment(p, "threads: %zu, of these %u read quietly, %u signalled, %u gave no answer", d->count,
		d->quiet, d->signalled, d->silent);
	if (d->filtered)
		profile_comment(p, "threads: %u run under a seccomp filter that the program has put on them, and were not signalled",
			d->filtered);
	profile_comment(p, "unwinder: %s", unwind_name());
	if (d->by_libunwind > 0)
		profile_comment(p, "stacks walked by libunwind: %u, the others by tables", d->by_libunwind);
	labels_comment(p);
	for (size_t i = 0; i < d->count; i++)
		if (d->threads[i].how == DUMP_SILENT && !d->threads[i].filtered)
			profile_comment(p, "no answer: thread %d \"%s\", state %c", (int)d->threads[i].tid,
				d->threads[i].name, d->threads[i].state);
}

/* Equal stacks of equal labels as one sample. */
static int
profile_of(const struct dump *d, const struct collector *c, bool leaked, struct profile *ret)
{
	struct profile p;
	int            err = 0;

	profile_describe(d, c, &p);
	for (size_t i = 0; i < d->count && !err; i++) {
		const struct dump_thread *t = &d->threads[i];
		struct profile_sample     s = { .values = { 1 }, .counted_values = { 1 } };
		/* Who has answered without a stack, as where none can be walked in a handler, did run. */
		uintptr_t                 pcs[STACK_FRAMES_MAX] = {
			t->how == DUMP_SIGNALLED ? STACK_PSEUDO_RUNNING : STACK_PSEUDO_SILENT };
		unsigned                  n = t->count ? t->count : 1;

		if (leaked && !dump_thread_is_leaked(t))
			continue;
		if (t->count)
			memcpy(pcs, d->pcs + t->first, n * sizeof(*pcs));
		if (t->count && t->truncated) {
			n -= n == STACK_FRAMES_MAX;
			pcs[n++] = STACK_PSEUDO_TRUNCATED;
			p.truncated++;
		}
		s.stack = stack_table_add(pcs, n);
		s.labels = t->labels;
		labels_ref(s.labels);
		err = profile_add(&p, &s);
	}
	return profile_done(&p, err, ret);
}

int
dump_snapshot(const struct collector *c, const struct collect_params *params, bool leaked, struct product *ret)
{
	struct dump d;
	unsigned    want = THREADS_KEEP | THREADS_REMOTE;
	int         n, r;

	want |= (params->own ? THREADS_OWN : 0) | (params->each ? THREADS_NAMES : 0) |
		(leaked || params->each ? THREADS_LOCKS : 0);
	r = threads_dump_of(&d, want);
	if (r)
		return r;
	n = snprintf(ret->note, sizeof(ret->note), "%zu; quiet=%u; signalled=%u; silent=%u", d.count, d.quiet,
		d.signalled, d.silent);
	if (d.filtered)
		snprintf(ret->note + n, sizeof(ret->note) - (size_t)n, "; filtered=%u", d.filtered);
	if (params->each) {
		if (leaked)
			dump_keep_leaked(&d);
		dump_tag(&d);
		ret->type = PRODUCT_DUMP;
		ret->dump = d;
		return 0;
	}
	r = profile_of(&d, c, leaked, &ret->profile);
	ret->type = PRODUCT_PROFILE;
	dump_release(&d);
	return r;
}
