/*
 * scheduling.c - the threads and processors of a story, and the events that move them.
 *
 * Whatever a thread and a processor did before, what they do next is told in an order
 * that the readers of execution traces accept: what is missing in between is made up.
 *
 * Tests: tests/encode/test_gotrace.c
 */
#include <config.h>

#include "scheduling.h"

#include <errno.h>
#include <string.h>

void
story_emit(struct story *s, struct story_event e)
{
	if (s->error)
		return;
	e.time = s->clock > s->last ? s->clock : s->last + 1;
	s->last = e.time;
	s->error = s->event(s->arg, &e);
}

struct story_slot *
story_slot(struct story *s, int32_t tid)
{
	struct story_slot *slot = (struct story_slot *)(uintptr_t)table_get(&s->slots, (uint32_t)tid);

	if (slot)
		return slot;
	slot = arena_alloc(&s->arena, sizeof(*slot));
	if (!slot || table_put(&s->slots, (uint32_t)tid, (uintptr_t)slot) < 0) {
		s->error = -ENOMEM;
		return NULL;
	}
	slot->claims = STORY_NO_CPU;
	return slot;
}

/* A processor of its own; those of the dead are used again. */
static int
cpu_take(struct story *s, uint32_t *ret)
{
	if (s->free_count) {
		*ret = s->free_cpus[--s->free_count];
		return 0;
	}
	if (s->cpu_count == s->cpu_room) {
		size_t                room = s->cpu_room ? s->cpu_room * 2 : 64;
		struct story_thread **cpus = arena_array(&s->arena, room, sizeof(*cpus));
		uint32_t             *free_cpus = arena_array(&s->arena, room, sizeof(*free_cpus));

		if (!cpus || !free_cpus)
			return -ENOMEM;
		if (s->cpu_count)
			memcpy(cpus, s->cpus, s->cpu_count * sizeof(*cpus));
		s->cpus = cpus;
		s->free_cpus = free_cpus; /* none is free */
		s->cpu_room = room;
	}
	*ret = (uint32_t)s->cpu_count++;
	return 0;
}

struct story_thread *
story_thread_new(struct story *s, struct story_slot *slot, int32_t tid, const struct trace_thread *info)
{
	struct story_thread *t = arena_alloc(&s->arena, sizeof(*t));

	if (!t)
		goto no_memory;
	*t = (struct story_thread){ .slot = slot, .tid = tid, .serial = ++s->serial, .cpu = STORY_NO_CPU,
		.info = info, .name = "", .label = "" };
	if (info && !info->own && strcmp(info->name, s->common))
		t->name = info->name;
	t->routine = info ? info->routine : 0;
	t->label_told = *t->name ? NULL : t->label;
	if (s->trace->source == TRACE_BY_HOOKS && cpu_take(s, &t->own_cpu) < 0)
		goto no_memory;
	slot->thread = t;
	return t;
no_memory:
	s->error = -ENOMEM;
	return NULL;
}

void
story_cpu_stop(struct story *s, struct story_thread *t)
{
	uint32_t cpu = t->cpu;

	t->cpu = STORY_NO_CPU;
	s->cpus[cpu] = NULL;
	story_emit(s, (struct story_event){ .type = STORY_CPU_STOP, .on = t, .cpu = cpu });
}

void
story_out(struct story *s, struct story_thread *t, bool preempted)
{
	struct story_event e = { .type = STORY_PREEMPT, .on = t, .cpu = t->cpu, .made = STORY_PREEMPTED };

	if (!preempted) {
		e.type = STORY_BLOCK;
		/* What we wait for ourselves is in no profile of blocking. */
		e.reason = t->waits && !(t->info && t->info->own) ? t->reason : TRACE_OTHER;
		e.stack = t->waits ? t->wait_stack : 0;
		e.made = e.stack ? STORY_TAKEN : STORY_OFF_CPU;
	}
	t->state = preempted ? STORY_RUNNABLE : STORY_WAITING;
	story_emit(s, e);
	story_cpu_stop(s, t);
}

void
story_in(struct story *s, struct story_thread *t, uint32_t cpu)
{
	struct story_thread *before = s->cpus[cpu];

	if (before == t)
		return;
	if (before) {
		s->repaired++;
		story_out(s, before, !before->waits);
	}
	if (t->state == STORY_RUNNING) {
		s->repaired++;
		story_out(s, t, !t->waits);
	}
	s->cpus[cpu] = t;
	t->cpu = cpu;
	story_emit(s, (struct story_event){ .type = STORY_CPU_START, .on = t, .cpu = cpu });
	if (t->state == STORY_UNBORN)
		story_emit(s, (struct story_event){ .type = STORY_CREATE, .on = t, .other = t, .cpu = cpu });
	if (t->state == STORY_WAITING)
		story_emit(s, (struct story_event){ .type = STORY_UNBLOCK, .on = t, .other = t, .cpu = cpu,
			.made = STORY_WAKEUP });
	t->state = STORY_RUNNING;
	story_emit(s, (struct story_event){ .type = STORY_START, .on = t, .cpu = cpu });
}

const struct trace_thread *
story_info_take(struct story_slot *slot, uint64_t now_ns)
{
	const struct trace_thread *info = NULL;

	for (; slot->later && (!info || slot->later->info->born_ns <= now_ns); slot->later = slot->later->next)
		info = slot->later->info;
	return info;
}

struct story_thread *
story_thread_of(struct story *s, const struct trace_record *r, bool may_be_new)
{
	struct story_slot   *slot = story_slot(s, r->tid);
	struct story_thread *t;

	if (!slot)
		return NULL;
	t = slot->thread;
	if (t && t->state != STORY_DEAD)
		return t;
	/* A dead one's id means another only if somebody has told of that one. */
	if (!may_be_new || (t && (!slot->later || slot->later->info->born_ns > r->time_ns)))
		return NULL;
	t = story_thread_new(s, slot, r->tid, story_info_take(slot, r->time_ns));
	if (t)
		t->implied = true;
	return t;
}
