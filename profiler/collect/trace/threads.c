/*
 * threads.c - births, deaths, CPU samples and labels of threads, told to a trace by
 * those whom they befall.
 *
 * What a stranger would get wrong: a thread's end is told by its cleanup handler, and it
 * runs on for a while; also a wait that it was cancelled in ends there at last.  A sample is
 * told by a signal handler.
 *
 * Tests: tests/trace/test_tracer.c, tests/trace/measured_waits.t.
 */
#include <config.h>

#include "threads.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "arch.h"
#include "collector.h"
#include "cpu_sampler.h"
#include "events/ring.h"
#include "events/wait.h"
#include "hidden_frames.h"
#include "labels.h"
#include "labels/thread.h"
#include "seccomp.h"
#include "stack_table.h"
#include "thread_events.h"
#include "unwind.h"

/* Before the thread can run: its birth comes before all it does. */
static void
on_made(struct thread_events_note *ret, const struct unwind_regs *from)
{
	uintptr_t pcs[STACK_FRAMES_MAX];
	int       cut = 0;

	if (!events_ring_is_wanted())
		return;
	ret->time_ns = (uint64_t)trace_now_ns();
	ret->tid = trace_tid();
	ret->id = stack_table_add(pcs, hidden_frames_drop(pcs, unwind_capture(from, pcs, STACK_FRAMES_MAX, &cut)));
}

static void
on_started(const struct thread_events_note *note, const void *routine)
{
	struct trace_event e = { .type = TRACE_CREATE, .time_ns = note->time_ns, .other = note->tid,
		.value = (uintptr_t)routine, .parent = note->id, .cpu = TRACE_CPU_NONE };

	if (!note->time_ns)
		return; /* no trace was open */
	e.tid = trace_tid();
	if (!events_ring_is_wanted() || !events_ring_add(&e))
		stack_table_unref(note->id);
}

static void
on_end(void)
{
	char               name[TRACE_NAME_MAX] = "";
	struct trace_event e = { .type = TRACE_EVENT_NAME, .text = name, .cpu = TRACE_CPU_NONE };

	if (!events_ring_is_wanted())
		return;
	e.tid = trace_tid();
	e.time_ns = (uint64_t)trace_now_ns();
	if (!seccomp_on()) { /* a system call */
		pthread_getname_np(pthread_self(), name, sizeof(name));
		events_ring_add(&e);
	}
	events_wait_gone(e.tid, (int64_t)e.time_ns);
	e.type = TRACE_EXIT;
	e.text = NULL;
	events_ring_add(&e);
}

THREAD_EVENTS_SLOT(THREAD_EVENTS_TRACE, .made = on_made, .failed = stack_table_unref, .started = on_started, .end = on_end);

/* Where it is read from memory that the kernel keeps up: a filter of system calls may kill. */
static uint16_t
cpu_here(void)
{
	int cpu = ARCH_CPU_IN_MEMORY ? sched_getcpu() : -1;

	return cpu >= 0 && cpu < TRACE_CPU_NONE ? (uint16_t)cpu : TRACE_CPU_NONE;
}

static void
on_sample(const uintptr_t *pcs, unsigned count, unsigned weight)
{
	struct trace_event e = { .type = TRACE_SAMPLE, .value = weight, .pcs = pcs, .count = count };

	if (!events_ring_is_wanted())
		return;
	e.cpu = cpu_here(); /* before the time: a switch in between is told of before that */
	e.tid = trace_tid();
	e.time_ns = (uint64_t)trace_now_ns();
	events_ring_add(&e);
}

/* A thread's labels from now on. */
static void
on_labels(uint32_t set)
{
	char               text[LABELS_BYTES_MAX];
	struct trace_event e = { .type = TRACE_LABELS, .text = text, .cpu = TRACE_CPU_NONE };
	int                saved = errno;

	labels_plain(set, text, sizeof(text));
	e.tid = trace_tid();
	e.time_ns = (uint64_t)trace_now_ns();
	events_ring_add(&e);
	errno = saved;
}

void
trace_threads_watch(bool on)
{
	const struct collector *c = COLLECTOR_WITH(cpu);

	cpu_here(); /* bound outside of the handler */
	if (c)
		c->cpu->watch(on ? on_sample : NULL);
	labels_watch(on ? on_labels : NULL);
}
