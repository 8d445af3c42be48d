/*
 * trace_told.c - births, deaths, CPU samples and labels of threads, told to a trace by
 * those whom they befall.
 *
 * What a stranger would get wrong: a thread's end is told by its cleanup handler, and it
 * runs on for a while; also a wait that it was cancelled in ends there at last.  A sample is
 * told by a signal handler.
 *
 * Tests: tests/test_tracer.c, tests/trace.t.
 */
#include <config.h>

#include "trace_told.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "filtered.h"
#include "labels.h"
#include "labels_thread.h"
#include "stack_table.h"
#include "trace_ring.h"
#include "trace_wait.h"
#include "tracer.h"

void
tracer_thread_started(uint64_t made_ns, int32_t creator, uint32_t stack, const void *routine)
{
	struct trace_event e = { .type = TRACE_CREATE, .time_ns = made_ns, .tid = trace_tid(), .other = creator,
		.value = (uintptr_t)routine, .parent = stack, .cpu = TRACE_CPU_NONE };

	if (!tracer_is_on() || !trace_ring_add(&e))
		stack_table_unref(stack);
}

void
tracer_thread_ending(void)
{
	char               name[TRACE_NAME_MAX] = "";
	struct trace_event e = { .type = TRACE_EVENT_NAME, .text = name, .cpu = TRACE_CPU_NONE };

	if (!tracer_is_on())
		return;
	e.tid = trace_tid();
	e.time_ns = (uint64_t)trace_now_ns();
	if (!filtered()) { /* a system call */
		pthread_getname_np(pthread_self(), name, sizeof(name));
		trace_ring_add(&e);
	}
	trace_wait_gone(e.tid, (int64_t)e.time_ns);
	e.type = TRACE_EXIT;
	e.text = NULL;
	trace_ring_add(&e);
}

/* Where it is read from memory that the kernel keeps up: a filter of system calls may kill. */
static uint16_t
cpu_here(void)
{
#if defined(__x86_64__) || (defined(__GLIBC__) && __GLIBC_PREREQ(2, 35))
	int cpu = sched_getcpu();

	return cpu >= 0 && cpu < TRACE_CPU_NONE ? (uint16_t)cpu : TRACE_CPU_NONE;
#else
	return TRACE_CPU_NONE;
#endif
}

void
tracer_sample(const uintptr_t *pcs, unsigned count, unsigned weight)
{
	struct trace_event e = { .type = TRACE_SAMPLE, .value = weight, .pcs = pcs, .count = count };

	if (!tracer_is_on())
		return;
	e.cpu = cpu_here(); /* before the time: a switch in between is told of before that */
	e.tid = trace_tid();
	e.time_ns = (uint64_t)trace_now_ns();
	trace_ring_add(&e);
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
	trace_ring_add(&e);
	errno = saved;
}

void
trace_told_watch(bool on)
{
	cpu_here(); /* bound outside of the handler */
	labels_watch(on ? on_labels : NULL);
}
