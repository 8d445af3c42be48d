/*
 * scheduling.h - the threads and processors of a story, and the events that move them.
 *
 * An error is kept in the story, which ends there: nothing here reports one otherwise.
 */
#ifndef ENCODE_TRACE_SCHEDULING_H
#define ENCODE_TRACE_SCHEDULING_H

#include "story.h"

static inline bool
story_by_hooks(const struct story *s)
{
	return s->trace->source == TRACE_BY_HOOKS;
}

void story_emit(struct story *s, struct story_event e);
/* The slot of a kernel id, NULL without memory. */
struct story_slot *story_slot(struct story *s, int32_t tid);
/* A new thread of it, STORY_UNBORN; info may be NULL.  NULL without memory. */
struct story_thread *story_thread_new(struct story *s, struct story_slot *slot, int32_t tid,
	const struct trace_thread *info);
/* Starts a thread on a processor, whatever they did before; and makes it leave. */
void story_in(struct story *s, struct story_thread *t, uint32_t cpu);
void story_out(struct story *s, struct story_thread *t, bool preempted);
/* The thread whose record this is; NULL: none that counts. */
struct story_thread *story_thread_of(struct story *s, const struct trace_record *r, bool may_be_new);
/* What the trace's table has of who is born now: of those that were born by now the
 * last, else the next. */
const struct trace_thread *story_info_take(struct story_slot *slot, uint64_t now_ns);
void story_cpu_stop(struct story *s, struct story_thread *t);

#endif
