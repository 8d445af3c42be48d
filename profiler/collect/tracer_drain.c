/*
 * tracer_drain.c - what the sources of a trace tell, on its way to every open window.
 *
 * All of it with the tracer's `lock` held.
 *
 * What a stranger would get wrong:
 * - A stack is interned when a record is read, not when it is written: a hooked write()
 *   in a signal handler must not wait for the stack table.
 * - Two exits of a thread are told, by the hook and by the kernel: with switches only the
 *   kernel's counts, since the thread runs on for a while after the hook.
 *
 * Tests: tests/test_tracer.c, tests/trace.t.
 */
#include <config.h>

#include <stdatomic.h>
#include <string.h>

#include "stack_table.h"
#include "trace_finish.h"
#include "trace_perf.h"
#include "trace_ring.h"
#include "tracer_parts.h"
#include "unwind.h"

void
tracer_window_add(struct tracer_window *w, const struct trace_record *r)
{
	if (tracer_state.records >= TRACER_RECORDS_MAX) {
		tracer_state.lost++;
		return;
	}
	if (r->stack)
		stack_table_ref(r->stack);
	if (trace_add(&w->trace, r) < 0)
		tracer_state.lost++;
	else
		tracer_state.records++;
}

void
tracer_tell(const struct trace_record *r, const char *name, const char *text)
{
	struct trace_record mine = *r;

	for (struct tracer_window *w = tracer_state.windows; w; w = w->next) {
		if (w->trace.text_bytes >= TRACER_TEXTS_MAX && ((name && *name) || (text && *text))) {
			tracer_state.lost++;
			continue;
		}
		mine.name = name && *name ? trace_text(&w->trace, name, TRACE_EVENT_NAME_MAX) : 0;
		mine.text = text && *text ? trace_text(&w->trace, text, TRACE_EVENT_TEXT_MAX) : 0;
		tracer_window_add(w, &mine);
	}
}

/* The stack of an event, with a reference; who told of a birth has interned it. */
static uint32_t
stack_of(const struct trace_event *e)
{
	uintptr_t pcs[STACK_FRAMES_MAX];
	unsigned  count = e->count < STACK_FRAMES_MAX ? e->count : STACK_FRAMES_MAX;
	int       truncated;

	if (e->type == TRACE_CREATE)
		return (uint32_t)e->parent;
	if (count == 0)
		return 0;
	memcpy(pcs, e->pcs, count * sizeof(*pcs));
	count = unwind_prove(pcs, count, &truncated);
	return stack_table_add(pcs, count);
}

static void
on_waited(const struct trace_event *e, struct trace_record *r)
{
	r->type = TRACE_WAIT;
	r->value = 0;
	tracer_tell(r, NULL, NULL);
	r->type = TRACE_WAIT_END;
	r->time_ns = e->value;
	if (r->stack)
		stack_table_unref(r->stack);
	r->stack = 0;
}

static void
on_event(void *arg, const struct trace_event *e)
{
	struct trace_record r = { .time_ns = e->time_ns, .tid = e->tid, .other = e->other, .type = e->type,
		.reason = e->reason, .flags = e->flags, .cpu = e->cpu, .value = e->value, .parent = e->parent };

	(void)arg;
	if (e->type == TRACE_EXIT && atomic_load(&tracer_state.by_switches))
		return;
	r.stack = stack_of(e);
	if (e->type == TRACE_CREATE)
		r.parent = 0;
	if (e->type == TRACE_EVENT_NAME)
		r.type = TRACE_RECORD_NAME;
	if (e->type == TRACE_EVENT_WAITED)
		on_waited(e, &r);
	tracer_tell(&r, e->name, e->text);
	if (r.stack)
		stack_table_unref(r.stack);
}

static void
on_kernel(void *arg, const struct trace_record *r)
{
	(void)arg;
	tracer_tell(r, NULL, NULL);
}

static void
on_kernel_name(void *arg, int32_t tid, uint64_t time_ns, const char *name)
{
	struct trace_record r = { .time_ns = time_ns, .tid = tid, .type = TRACE_RECORD_NAME, .cpu = TRACE_CPU_NONE };

	(void)arg;
	tracer_tell(&r, NULL, name);
}

void
tracer_drain(void)
{
	trace_ring_drain(on_event, NULL);
	if (atomic_load(&tracer_state.by_switches))
		trace_perf_drain(on_kernel, on_kernel_name, NULL);
}

uint64_t
tracer_lost_now(void)
{
	return tracer_state.lost + trace_ring_lost() + (atomic_load(&tracer_state.by_switches) ? trace_perf_lost() : 0);
}
