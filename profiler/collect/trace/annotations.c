/*
 * annotations.c - the program's own words in an execution trace.
 *
 * Each call leads to one record in the ring, with the stack of the caller.  Numbers of
 * tasks are given out while a trace is open alone: what began before is 0, no task.
 *
 * What a stranger would get wrong: the stack begins at the caller, so no function here
 * may call another of these as its last act, or be inlined.
 *
 * Tests: tests/trace/test_tracer.c, tests/trace/measured_waits.t.
 */
#include <config.h>

#include <component/trace.h>

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "events/ring.h"
#include "hidden_frames.h"
#include "stack_table.h"
#include "trace.h"
#include "unwind.h"

_Static_assert(COMPONENT_TRACE_NAME_MAX == TRACE_EVENT_NAME_MAX, "one limit");
_Static_assert(COMPONENT_TRACE_TEXT_MAX == TRACE_EVENT_TEXT_MAX, "one limit");

static _Atomic uint64_t last_task;

bool
component_trace_is_on(void)
{
	return events_ring_is_wanted();
}

/* Sets who and when, and from where. */
static void
tell(struct trace_event *e, const struct unwind_regs *regs)
{
	uintptr_t pcs[STACK_FRAMES_MAX];
	int       saved = errno, cut = 0;

	e->tid = trace_tid();
	e->time_ns = (uint64_t)trace_now_ns();
	e->cpu = TRACE_CPU_NONE;
	e->count = hidden_frames_drop(pcs, unwind_capture(regs, pcs, STACK_FRAMES_MAX, &cut));
	e->pcs = pcs;
	events_ring_add(e);
	errno = saved;
}

__attribute__((noinline)) uint64_t
component_trace_task_begin(const char *type, uint64_t parent)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	struct trace_event e = { .type = TRACE_TASK_BEGIN, .name = type, .parent = parent };

	if (!events_ring_is_wanted())
		return 0;
	e.value = atomic_fetch_add(&last_task, 1) + 1;
	tell(&e, &regs);
	return e.value;
}

__attribute__((noinline)) void
component_trace_task_end(uint64_t task)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	struct trace_event e = { .type = TRACE_TASK_END, .value = task };

	if (task && events_ring_is_wanted())
		tell(&e, &regs);
}

__attribute__((noinline)) void
component_trace_region_begin(uint64_t task, const char *type)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	struct trace_event e = { .type = TRACE_REGION_BEGIN, .value = task, .name = type };

	if (events_ring_is_wanted())
		tell(&e, &regs);
}

__attribute__((noinline)) void
component_trace_region_end(uint64_t task, const char *type)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	struct trace_event e = { .type = TRACE_REGION_END, .value = task, .name = type };

	if (events_ring_is_wanted())
		tell(&e, &regs);
}

__attribute__((noinline)) void
component_trace_log(uint64_t task, const char *category, const char *format, ...)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	char               text[TRACE_EVENT_TEXT_MAX + 1];
	struct trace_event e = { .type = TRACE_LOG, .value = task, .name = category, .text = text };
	va_list            args;
	int                saved = errno;

	if (!events_ring_is_wanted())
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	errno = saved;
	tell(&e, &regs);
}
