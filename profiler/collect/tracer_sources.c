/*
 * tracer_sources.c - the sources of a trace, on and off, and the thread that empties them.
 *
 * component-trace empties them every 50 ms, reads how much of the heap is in use every
 * 100 ms, and looks for threads that have vanished.
 *
 * Heap: the estimate of the heap profile, not mallinfo2(), which takes malloc's locks.
 * Tests: tests/test_tracer.c, tests/trace.t.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "cpu_proc.h"
#include "heap.h"
#include "hooks_threads.h"
#include "own_thread.h"
#include "trace_calls.h"
#include "trace_look.h"
#include "trace_perf.h"
#include "trace_ring.h"
#include "trace_told.h"
#include "trace_wait.h"
#include "tracer_parts.h"
#include "waits.h"

#define DRAIN_NS    50000000LL
#define HEAP_DRAINS 2 /* the heap is read in one of so many */

static void
on_vanished(void *arg, int32_t tid, int64_t now_ns)
{
	struct trace_record r = { .time_ns = (uint64_t)now_ns, .tid = tid, .type = TRACE_EXIT, .cpu = TRACE_CPU_NONE };

	(void)arg;
	trace_wait_gone(tid, now_ns);
	if (atomic_load(&tracer_state.by_switches))
		return;
	pthread_mutex_lock(&tracer_state.lock);
	tracer_tell(&r, NULL, NULL);
	pthread_mutex_unlock(&tracer_state.lock);
}

static void
look_heap(void)
{
	struct trace_record r = { .type = TRACE_HEAP, .cpu = TRACE_CPU_NONE };

	if (heap_rate() == 0 || heap_live_bytes(&r.value) < 0)
		return;
	r.time_ns = (uint64_t)trace_now_ns();
	pthread_mutex_lock(&tracer_state.lock);
	tracer_tell(&r, NULL, NULL);
	pthread_mutex_unlock(&tracer_state.lock);
}

static void *
run(void *arg)
{
	for (unsigned n = 0; !atomic_load(&tracer_state.stop); n++) {
		pthread_mutex_lock(&tracer_state.lock);
		tracer_drain();
		pthread_mutex_unlock(&tracer_state.lock);
		if (n % HEAP_DRAINS == 0) {
			look_heap();
			trace_look(on_vanished, NULL);
		}
		if (!atomic_load(&tracer_state.stop))
			trace_ring_sleep(DRAIN_NS);
	}
	return arg;
}

void
tracer_sources_stop(void)
{
	if (tracer_state.started) {
		atomic_store(&tracer_state.stop, true);
		trace_ring_ring();
		pthread_join(tracer_state.thread, NULL);
		tracer_state.started = false;
	}
	hooks_threads_watch(HOOKS_THREADS_TRACE, false);
	waits_trace(false);
	trace_calls_watch(false);
	trace_told_watch(false);
	atomic_store(&tracer_state.on, false);
	pthread_mutex_lock(&tracer_state.lock);
	trace_wait_close();
	if (atomic_load(&tracer_state.by_switches))
		trace_perf_close();
	atomic_store(&tracer_state.by_switches, false);
	trace_ring_close();
	pthread_mutex_unlock(&tracer_state.lock);
	trace_look_end();
}

int
tracer_sources_start(void)
{
	int r;

	pthread_mutex_lock(&tracer_state.lock);
	tracer_state.lost = tracer_state.records = 0;
	r = trace_ring_open();
	if (r == 0)
		r = trace_wait_open();
	if (r == 0)
		atomic_store(&tracer_state.by_switches, trace_perf_open(tracer_state.why, sizeof(tracer_state.why)) == 0);
	pthread_mutex_unlock(&tracer_state.lock);
	if (r == 0) {
		hooks_threads_watch(HOOKS_THREADS_TRACE, true);
		trace_calls_watch(true);
		trace_told_watch(true);
		snprintf(tracer_state.waits, sizeof(tracer_state.waits), "%s", waits_trace(true) < 0 ? waits_status() : "");
		atomic_store(&tracer_state.stop, false);
		r = own_thread_start("component-trace", run, NULL, &tracer_state.thread);
		tracer_state.started = r == 0;
	}
	if (r < 0)
		tracer_sources_stop();
	return r;
}
