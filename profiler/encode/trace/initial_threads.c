/*
 * initial_threads.c - who is there when a trace begins, and what they do then.
 *
 * Every thread that lives at the start is created on the first processor, within the
 * nanoseconds before the start: so each has its name from the beginning.  One that waits
 * is put on that processor for a nanosecond, from where it blocks with its reason and
 * stack: a thread that never runs in the whole trace still says where it waits.
 *
 * What a stranger would get wrong: the kernel's switches do not tell who ran when it
 * began.  Whoever is the first to leave a CPU, or to be sampled there, was on it since
 * the start, if nobody was seen to come to it before.
 *
 * Tests: tests/encode/test_gotrace.c
 */
#include <config.h>

#include "initial_threads.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "annotations.h"
#include "scheduling.h"

/* Nanoseconds before the trace's start: for each thread, and for what there is once. */
#define CAST_NS_EACH 8
#define CAST_NS      64

static int
later_add(struct story *s, struct story_slot *slot, const struct trace_thread *info)
{
	struct story_later  *l = arena_alloc(&s->arena, sizeof(*l));
	struct story_later **at = &slot->later;

	if (!l)
		return -ENOMEM;
	while (*at && (*at)->info->born_ns <= info->born_ns)
		at = &(*at)->next;
	*l = (struct story_later){ .next = *at, .info = info };
	*at = l;
	return 0;
}

/* The trace's table: who is there, and who will be. */
static int
cast_read(struct story *s)
{
	const struct trace *t = s->trace;

	for (size_t i = 0; i < t->thread_count; i++)
		if (t->threads[i].main)
			s->common = t->threads[i].name;
	for (size_t i = 0; i < t->thread_count && !s->error; i++) {
		const struct trace_thread *info = &t->threads[i];
		struct story_slot         *slot = story_slot(s, info->tid);
		struct story_thread       *thread;

		if (!slot)
			return -ENOMEM;
		if (info->born_ns > t->start_ns) {
			s->error = later_add(s, slot, info);
			continue;
		}
		if (slot->thread)
			continue;
		thread = story_thread_new(s, slot, info->tid, info);
		if (thread && (info->main || !s->main))
			s->main = thread;
	}
	return s->error;
}

/* Who ran at the start, neither left a CPU nor came to one, and was never sampled on one was
 * on one all the time: on one of those of which nothing else is told. */
static void
claims_guess(struct story *s, const bool *known)
{
	const struct trace *t = s->trace;
	size_t              cpu = 0;

	for (size_t i = 0; i < t->thread_count; i++) { /* not as they lie in a table: the story is always the same */
		struct story_slot *slot = (struct story_slot *)(uintptr_t)table_get(&s->slots, (uint32_t)t->threads[i].tid);

		if (!slot || !slot->thread || slot->first || slot->claims != STORY_NO_CPU || !slot->thread->info ||
			slot->thread->info->state != TRACE_STATE_RUNNING)
			continue;
		while (cpu < s->cpu_count && known[cpu])
			cpu++;
		if (cpu == s->cpu_count)
			return;
		slot->claims = (uint32_t)cpu++;
	}
}

/* Who was on which CPU since the start. */
static int
claims_read(struct story *s)
{
	const struct trace *t = s->trace;
	size_t              open = s->cpu_count;
	bool               *known = arena_array(&s->arena, open, sizeof(*known));

	if (!known)
		return -ENOMEM;
	for (size_t i = 0; i < t->count && open; i++) {
		const struct trace_record *r = &t->records[i];
		struct story_slot         *slot;

		if ((r->type != TRACE_IN && r->type != TRACE_OUT && r->type != TRACE_SAMPLE) ||
		    r->cpu >= s->cpu_count)
			continue;
		slot = story_slot(s, r->tid);
		if (!slot)
			return -ENOMEM;
		if (!known[r->cpu] && r->type != TRACE_IN && !slot->first && !slot->later) {
			slot->claims = r->cpu;
			if (!slot->thread && !story_thread_new(s, slot, r->tid, NULL))
				return -ENOMEM;
			if (!s->main)
				s->main = slot->thread;
		}
		slot->first = (uint8_t)(1 + r->type);
		open -= !known[r->cpu];
		known[r->cpu] = true;
	}
	claims_guess(s, known);
	return 0;
}

/* What each thread does first, which tells whether it waited.  Labels of the start are the dump's word, not its own. */
static int
firsts_read(struct story *s)
{
	const struct trace *t = s->trace;

	for (size_t i = 0; i < t->count; i++) {
		const struct trace_record *r = &t->records[i];
		struct story_slot         *slot;

		if (r->type == TRACE_HEAP || (r->type == TRACE_LABELS && r->time_ns <= t->start_ns))
			continue;
		slot = story_slot(s, r->tid);
		if (!slot)
			return -ENOMEM;
		if (!slot->first)
			slot->first = (uint8_t)(1 + r->type);
	}
	return 0;
}

/* A thread that waits when the trace begins.  Nobody will tell that this wait is over. */
static void
cast_park(struct story *s, struct story_thread *t, uint32_t cpu)
{
	const struct trace_thread *info = t->info;

	t->waits = info && info->state == TRACE_STATE_WAITING;
	if (t->waits) {
		t->reason = info->reason;
		t->wait_stack = info->stack;
	}
	story_in(s, t, cpu);
	story_out(s, t, false);
	t->waits = false;
}

static void
cast_by_hooks(struct story *s, struct story_thread *t)
{
	uint8_t state = t->info ? t->info->state : TRACE_STATE_UNKNOWN;

	if (t->info && t->info->own) /* nobody tells of what it does; and one has made the dump */
		state = TRACE_STATE_WAITING;
	if (state == TRACE_STATE_UNKNOWN)
		state = !t->slot->first || t->slot->first == 1 + TRACE_WAIT_END ? TRACE_STATE_WAITING :
			TRACE_STATE_RUNNING;
	if (state == TRACE_STATE_WAITING)
		cast_park(s, t, t->own_cpu);
	else
		story_in(s, t, t->own_cpu);
}

static void
notes_log(struct story *s)
{
	struct story_thread *t = s->main;

	if (!s->notes || !s->notes[0])
		return;
	story_in(s, t, 0);
	for (const char *const *note = s->notes; *note; note++)
		story_emit(s, (struct story_event){ .type = STORY_LOG, .on = t, .name = "libcomponent", .text = *note });
	story_out(s, t, true);
}

/* The threads of the start, which are those that have a serial by now. */
static struct story_thread **
initial_threads(struct story *s, size_t *ret_count)
{
	struct story_thread **all = arena_array(&s->arena, s->serial + 1, sizeof(*all));

	if (!all)
		return NULL;
	for (size_t i = 0; i < s->slots.size; i++) {
		struct story_slot *slot = (struct story_slot *)(uintptr_t)s->slots.slots[i].value;

		if (slot && slot->thread)
			all[slot->thread->serial - 1] = slot->thread;
	}
	*ret_count = s->serial;
	return all;
}

/* Readers refuse a trace without a thread, and what is said of it needs one. */
static int
nobody(struct story *s)
{
	int32_t            tid = getpid();
	struct story_slot *slot = story_slot(s, tid);

	s->main = slot ? story_thread_new(s, slot, tid, NULL) : NULL;
	return s->main ? 0 : -ENOMEM;
}

/* The labels of the start are there when a thread first runs, for it may never do so again. */
static void
labels_read(struct story *s)
{
	const struct trace *t = s->trace;

	for (size_t i = 0; i < t->count && t->records[i].time_ns <= t->start_ns; i++)
		if (t->records[i].type == TRACE_LABELS)
			story_on_labels(s, &t->records[i]);
}

int
story_begin(struct story *s)
{
	bool                  hooks = s->trace->source == TRACE_BY_HOOKS;
	struct story_thread **all;
	size_t                count;
	int                   r;

	if (!hooks) {
		s->cpu_count = s->trace->cpus ? s->trace->cpus : 1;
		s->cpus = arena_array(&s->arena, s->cpu_count, sizeof(*s->cpus));
		if (!s->cpus)
			return -ENOMEM;
	}
	r = cast_read(s);
	if (!r)
		r = hooks ? firsts_read(s) : claims_read(s);
	if (!r && !s->main)
		r = nobody(s);
	all = r ? NULL : initial_threads(s, &count);
	if (!all)
		return r ? r : -ENOMEM;
	labels_read(s);
	s->base = CAST_NS + (uint64_t)count * CAST_NS_EACH;
	story_emit(s, (struct story_event){ .type = STORY_CPU_START, .on = s->main });
	for (size_t i = 0; i < count; i++) {
		story_emit(s, (struct story_event){ .type = STORY_CREATE, .on = s->main, .other = all[i] });
		all[i]->state = STORY_RUNNABLE;
	}
	story_emit(s, (struct story_event){ .type = STORY_CPU_STOP, .on = s->main });
	notes_log(s);
	for (size_t i = 0; i < count; i++) {
		if (hooks)
			cast_by_hooks(s, all[i]);
		else if (all[i]->slot->claims == STORY_NO_CPU && !(all[i]->info && all[i]->info->state == TRACE_STATE_RUNNING))
			cast_park(s, all[i], 0);
	}
	for (size_t i = 0; i < count && !hooks; i++)
		if (all[i]->slot->claims != STORY_NO_CPU)
			story_in(s, all[i], all[i]->slot->claims);
	return s->error;
}
