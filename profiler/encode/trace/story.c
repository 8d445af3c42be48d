/*
 * story.c - the records of a trace, one after the other, as a consistent story.
 *
 *     records --> who runs where, who waits --> story events --> a writer
 *
 * What a record says is believed as long as it fits what is known; what is missing
 * before it is made up when the record leaves no doubt (a thread that leaves a CPU was
 * on it), and what cannot be placed is left out and counted.
 *
 * What a stranger would get wrong:
 * - A wait is announced before it is known whether the thread will sleep: WAIT alone
 *   changes nothing where the kernel tells of switches; the OUT after it is the block.
 * - A thread may go out and in several times within one wait, so the wait stays until
 *   WAIT_END.  Of one that it was in before the trace nobody tells that: it stays until
 *   the thread runs.
 * - The kernel tells nothing of the end of a thread's last time on a CPU: EXIT does.
 * - Whoever wakes itself up before it starts (the kernel told nothing of the waker)
 *   does so with a stack, because readers end a wait only at an event that has one.
 *
 * The threads and processors that a record moves: scheduling.c; who is there when it begins:
 * initial_threads.c; what threads say of themselves: annotations.c.
 *
 * Tests: tests/encode/test_gotrace.c, tests/encode/gotrace.t
 */
#include <config.h>

#include "story.h"

#include <errno.h>
#include <string.h>

#include "annotations.h"
#include "initial_threads.h"
#include "scheduling.h"

static void
on_in(struct story *s, const struct trace_record *r)
{
	struct story_thread *t = r->cpu < s->cpu_count ? story_thread_of(s, r, true) : NULL;

	if (!t) {
		s->dropped++;
		return;
	}
	if (s->cpus[r->cpu] == t) { /* its OUT is missing */
		s->repaired++;
		story_out(s, t, !t->waits);
	}
	story_in(s, t, r->cpu);
}

static void
on_out(struct story *s, const struct trace_record *r)
{
	struct story_thread *t = r->cpu < s->cpu_count ? story_thread_of(s, r, true) : NULL;

	if (!t) {
		s->dropped++;
		return;
	}
	if (s->cpus[r->cpu] != t) { /* it was there: its IN is missing */
		s->repaired++;
		story_in(s, t, r->cpu);
	}
	story_out(s, t, r->flags & TRACE_PREEMPTED);
}

static void
on_wait(struct story *s, const struct trace_record *r)
{
	struct story_thread *t = story_thread_of(s, r, story_by_hooks(s));

	if (!t) {
		s->dropped++;
		return;
	}
	if (story_by_hooks(s) && t->state != STORY_RUNNING)
		story_in(s, t, t->own_cpu);
	t->waits = true;
	t->reason = r->reason;
	t->wait_stack = r->stack;
	if (story_by_hooks(s))
		story_out(s, t, false);
}

static void
on_wait_end(struct story *s, const struct trace_record *r)
{
	struct story_thread *t = story_thread_of(s, r, story_by_hooks(s));

	if (!t) {
		s->dropped++;
		return;
	}
	t->waits = false;
	if (story_by_hooks(s) && t->state != STORY_RUNNING)
		story_in(s, t, t->own_cpu);
}

static void
on_wake(struct story *s, const struct trace_record *r)
{
	struct story_thread *t = story_thread_of(s, r, false);
	struct story_slot   *slot = story_slot(s, r->other);
	struct story_thread *other = slot ? slot->thread : NULL;

	/* Who does not wait yet, or not any more, needs nobody. */
	if (!t || t->state != STORY_RUNNING || !other || other->state != STORY_WAITING)
		return;
	other->state = STORY_RUNNABLE;
	story_emit(s, (struct story_event){ .type = STORY_UNBLOCK, .on = t, .other = other, .cpu = t->cpu,
		.stack = r->stack });
}

static void
dies(struct story *s, struct story_thread *t)
{
	t->state = STORY_DEAD;
	t->regions = NULL;
	if (story_by_hooks(s))
		s->free_cpus[s->free_count++] = t->own_cpu;
}

static void
on_create(struct story *s, const struct trace_record *r)
{
	struct story_slot   *slot = story_slot(s, r->tid);
	struct story_slot   *by = story_slot(s, r->other);
	struct story_thread *t = slot ? slot->thread : NULL, *creator = by ? by->thread : NULL;

	if (!slot || !by)
		return;
	if (t && t->state != STORY_DEAD) {
		if (!t->routine)
			t->routine = (uintptr_t)r->value;
		if (t->implied) { /* it was faster than the news of it */
			t->implied = false;
			return;
		}
		/* Its end is missing. */
		s->repaired++;
		if (t->state == STORY_RUNNING)
			story_out(s, t, true);
		dies(s, t);
	}
	t = story_thread_new(s, slot, r->tid, story_info_take(slot, r->time_ns));
	if (!t)
		return;
	if (r->value)
		t->routine = (uintptr_t)r->value;
	if (!creator || creator->state != STORY_RUNNING)
		return; /* it is created when it comes to a CPU */
	t->state = STORY_RUNNABLE;
	story_emit(s, (struct story_event){ .type = STORY_CREATE, .on = creator, .other = t, .cpu = creator->cpu,
		.stack = r->stack });
	if (story_by_hooks(s))
		story_in(s, t, t->own_cpu);
}

static void
on_exit_of(struct story *s, const struct trace_record *r)
{
	struct story_thread *t = story_thread_of(s, r, false);

	if (!t)
		return;
	if (story_by_hooks(s) && t->state != STORY_RUNNING)
		story_in(s, t, t->own_cpu);
	if (t->state == STORY_RUNNING) {
		while (t->regions)
			story_region_end(s, t, 0);
		story_emit(s, (struct story_event){ .type = STORY_END, .on = t, .cpu = t->cpu });
		dies(s, t);
		story_cpu_stop(s, t);
	} else {
		dies(s, t);
	}
}

typedef void on_record(struct story *s, const struct trace_record *r);

static on_record *const on[TRACE_TYPE_COUNT] = {
	[TRACE_IN] = on_in,
	[TRACE_OUT] = on_out,
	[TRACE_WAIT] = on_wait,
	[TRACE_WAIT_END] = on_wait_end,
	[TRACE_WAKE] = on_wake,
	[TRACE_CREATE] = on_create,
	[TRACE_EXIT] = on_exit_of,
	[TRACE_SAMPLE] = story_on_sample,
	[TRACE_LABELS] = story_on_labels,
	[TRACE_HEAP] = story_on_heap,
	[TRACE_TASK_BEGIN] = story_on_task,
	[TRACE_TASK_END] = story_on_task,
	[TRACE_REGION_BEGIN] = story_on_region_begin,
	[TRACE_REGION_END] = story_on_region_end,
	[TRACE_LOG] = story_on_log,
};

static void
clock_set(struct story *s, uint64_t ns)
{
	const struct trace *t = s->trace;

	if (ns > t->end_ns)
		ns = t->end_ns;
	s->clock = s->base + (ns > t->start_ns ? ns - t->start_ns : 0);
}

int
story_tell(struct story *s, const struct trace *t, struct arena_budget *budget,
	const char *const *notes, story_event_fn *event, void *arg)
{
	*s = (struct story){ .trace = t, .event = event, .arg = arg, .notes = notes, .common = "" };
	arena_init(&s->arena, budget);
	table_init(&s->slots, budget);
	table_init(&s->tasks, budget);
	s->error = story_begin(s);
	for (size_t i = 0; i < t->count && !s->error; i++) {
		const struct trace_record *r = &t->records[i];

		clock_set(s, r->time_ns);
		if (r->type < TRACE_TYPE_COUNT)
			on[r->type](s, r);
	}
	clock_set(s, t->end_ns);
	for (size_t i = 0; i < s->cpu_count && !s->error; i++)
		if (s->cpus[i])
			story_out(s, s->cpus[i], true);
	return s->error;
}

void
story_end(struct story *s)
{
	table_release(&s->slots);
	table_release(&s->tasks);
	arena_release(&s->arena);
}
