/*
 * tracer.c - execution traces: any number of windows on the same sources.
 *
 *     kernel's switches  (trace_perf.c) ──┐
 *     waits, wake-ups    (trace_wait.c) ──┤
 *     threads, CPU samples, labels,     ──┴─> component-trace ──> every open window
 *     annotations        (trace_ring.c)       tracer_drain.c        struct trace
 *
 * The first window starts the sources and the thread component-trace, which empties them
 * (tracer_sources.c).  The last one ends all of it.  A window is opened like this:
 *
 *     sources on ── start: window takes records ── dump of all threads ── ... ── end
 *
 * so that for each thread either a record or the dump says how it stood at the start;
 * trace_finish.c makes that out.  Only then component_trace_is_on() says so: what the
 * program tells from then on is in the trace.
 *
 * What a stranger would get wrong:
 * - Where the kernel's switches cannot be had, waits alone tell when a thread runs
 *   (TRACE_BY_HOOKS).  Where they can, hooks still say why a thread left its processor.
 * - Two locks as in cpu.c: `life` while sources start and stop, `lock` for the windows
 *   and the reading ends; fork holds `lock`.  The CPU sampler and the dump have locks
 *   of their own and are never entered with `lock` held.
 *
 * Tests: tests/test_tracer.c, tests/trace.t.
 */
#include <config.h>

#include "tracer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "collector.h"
#include "cpu.h"
#include "filtered.h"
#include "fork.h"
#include "heap.h"
#include "hooks_threads.h"
#include "labels.h"
#include "pages.h"
#include "stack_table.h"
#include "threads.h"
#include "trace_calls.h"
#include "trace_finish.h"
#include "trace_look.h"
#include "trace_perf.h"
#include "trace_reason.h"
#include "trace_ring.h"
#include "trace_wait.h"
#include "tracer_parts.h"

struct tracer_state tracer_state = { .life = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER };

void
tracer_status(char *buf, size_t size)
{
	pthread_mutex_lock(&tracer_state.lock);
	snprintf(buf, size, "%s%s", *tracer_state.why ? "when the last one began, switches came from the hooks alone: " : "",
		 tracer_state.why);
	pthread_mutex_unlock(&tracer_state.lock);
}

bool
tracer_is_on(void)
{
	return atomic_load_explicit(&tracer_state.on, memory_order_relaxed);
}

/* ---- windows ---- */

static struct tracer_window *
window_new(void)
{
	struct tracer_window *w = pages_map(sizeof(*w));

	if (!w)
		return NULL;
	trace_init(&w->trace);
	return w;
}

static void
window_free(struct tracer_window *w)
{
	trace_release(&w->trace);
	munmap(w, sizeof(*w));
}

/* While others may tell it something, too. */
static void
window_tell(struct tracer_window *w, const struct trace_record *r, const char *text)
{
	struct trace_record mine = *r;

	pthread_mutex_lock(&tracer_state.lock);
	mine.text = trace_text(&w->trace, text, TRACE_EVENT_TEXT_MAX);
	tracer_window_add(w, &mine);
	pthread_mutex_unlock(&tracer_state.lock);
}

/* Everybody who is there, and where. */
static int
window_threads(struct tracer_window *w)
{
	struct trace_record labels = { .time_ns = w->trace.start_ns, .type = TRACE_LABELS, .cpu = TRACE_CPU_NONE };
	char                text[LABELS_BYTES_MAX];
	struct dump         d;
	int                 r = threads_dump(&d, true);

	if (r < 0) {
		trace_comment(&w->trace, "threads at the start are not known: %s", strerror(-r));
		return 0;
	}
	for (size_t i = 0; i < d.count && r == 0; i++) {
		const struct dump_thread *from = &d.threads[i];
		struct trace_thread       to = { .tid = from->tid, .own = from->own, .main = from->tid == (int32_t)getpid() };

		memcpy(to.name, from->name, sizeof(to.name));
		to.state = from->how == DUMP_QUIET || from->state == 'S' ? TRACE_STATE_WAITING :
			   from->how == DUMP_SILENT ? TRACE_STATE_UNKNOWN : TRACE_STATE_RUNNING;
		to.reason = trace_reason_of_call(from->syscall);
		to.stack = from->count ? stack_table_add(d.pcs + from->first, from->count) : 0;
		r = trace_add_thread(&w->trace, &to);
		if (r == 0 && labels_plain(from->labels, text, sizeof(text))) {
			labels.tid = from->tid;
			window_tell(w, &labels, text);
		}
	}
	dump_release(&d);
	return r;
}

static void
window_describe(struct tracer_window *w)
{
	struct trace *t = &w->trace;

	if (atomic_load(&tracer_state.by_switches)) {
		t->source = TRACE_BY_SWITCHES;
		t->cpus = trace_perf_cpus();
		trace_comment(t, "switches: perf_event_open, %u events", trace_perf_events());
	} else {
		t->source = TRACE_BY_HOOKS;
		trace_comment(t, "switches: hooks; %s", tracer_state.why);
	}
	if (*tracer_state.waits)
		trace_comment(t, "%s", tracer_state.waits);
	if (!w->cpu)
		trace_comment(t, "no CPU samples: %s", cpu_status());
	if (heap_rate() == 0)
		trace_comment(t, "no heap: %s", *heap_status() ? heap_status() : "its sampling is off");
}

int
tracer_open(struct tracer_window **ret)
{
	struct tracer_window *w = window_new();
	int                   r = 0;

	if (!w)
		return -ENOMEM;
	filtered_look(); /* before the hooks are on */
	pthread_mutex_lock(&tracer_state.life);
	if (!tracer_state.windows)
		r = tracer_sources_start();
	if (r == 0) {
		if (cpu_window_open(&w->cpu) < 0)
			w->cpu = NULL;
		pthread_mutex_lock(&tracer_state.lock);
		tracer_drain();
		w->lost_before = tracer_lost_now();
		window_describe(w);
		w->trace.time_ns = clock_ns(CLOCK_REALTIME);
		w->trace.start_ns = (uint64_t)trace_now_ns();
		w->next = tracer_state.windows;
		tracer_state.windows = w;
		atomic_store(&tracer_state.on, true);
		pthread_mutex_unlock(&tracer_state.lock);
	}
	pthread_mutex_unlock(&tracer_state.life);
	if (r < 0) {
		window_free(w);
		return r;
	}
	r = window_threads(w);
	if (r < 0) {
		tracer_cancel(w);
		return r;
	}
	w->settled_ns = (uint64_t)trace_now_ns();
	*ret = w;
	return 0;
}

/* A wait that is not over, for one window. */
static void
on_waiting(void *window, const struct trace_event *e)
{
	struct tracer_window *w = window;
	struct trace_record   r = { .time_ns = e->time_ns, .tid = e->tid, .type = TRACE_WAIT, .reason = e->reason,
		.cpu = TRACE_CPU_NONE };

	r.stack = e->count ? stack_table_add(e->pcs, e->count) : 0;
	tracer_window_add(w, &r);
	if (r.stack)
		stack_table_unref(r.stack);
}

static void
window_end(struct tracer_window *w)
{
	struct tracer_window **link;

	pthread_mutex_lock(&tracer_state.life);
	pthread_mutex_lock(&tracer_state.lock);
	tracer_drain();
	trace_wait_look(on_waiting, w);
	w->trace.lost = tracer_lost_now() - w->lost_before;
	for (link = &tracer_state.windows; *link != w;)
		link = &(*link)->next;
	*link = w->next;
	tracer_state.records -= w->trace.count < tracer_state.records ? w->trace.count : tracer_state.records;
	pthread_mutex_unlock(&tracer_state.lock);
	if (w->cpu)
		cpu_window_cancel(w->cpu);
	if (!tracer_state.windows)
		tracer_sources_stop();
	pthread_mutex_unlock(&tracer_state.life);
}

int
tracer_close(struct tracer_window *w, struct trace *ret)
{
	int r;

	w->trace.end_ns = (uint64_t)trace_now_ns();
	window_end(w);
	if (w->trace.lost)
		trace_comment(&w->trace, "lost records: %llu", (unsigned long long)w->trace.lost);
	r = trace_finish(&w->trace, w->settled_ns);
	if (r == 0) {
		*ret = w->trace;
		trace_init(&w->trace);
	}
	window_free(w);
	return r;
}

void
tracer_cancel(struct tracer_window *w)
{
	window_end(w);
	window_free(w);
}

/* ---- fork ---- */

static void
fork_prepare(void)
{
	pthread_mutex_lock(&tracer_state.lock);
}

static void
fork_parent(void)
{
	pthread_mutex_unlock(&tracer_state.lock);
}

static void
fork_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	struct tracer_window        *w;

	atomic_store(&tracer_state.on, false);
	hooks_threads_watch(HOOKS_THREADS_TRACE, false);
	trace_calls_watch(false);
	trace_look_end();
	trace_wait_forked();
	trace_ring_forked();
	if (atomic_load(&tracer_state.by_switches))
		trace_perf_forked();
	atomic_store(&tracer_state.by_switches, false);
	while ((w = tracer_state.windows)) {
		tracer_state.windows = w->next;
		window_free(w);
	}
	tracer_state.started = false;
	tracer_state.life = fresh;
	tracer_state.lock = fresh;
}

FORK_SLOT(FORK_TRACE, fork_prepare, fork_parent, fork_child);

/* ---- as a collector ---- */

static int
collect_open(void **ret_window)
{
	struct tracer_window *w;
	int                   r = tracer_open(&w);

	if (!r)
		*ret_window = w;
	return r;
}

static int
collect_close(void *window, struct product *ret)
{
	ret->type = PRODUCT_TRACE;
	return tracer_close(window, &ret->trace);
}

static void
collect_cancel(void *window)
{
	tracer_cancel(window);
}

const struct collector collect_trace = {
	.name = "trace",
	.description = "A trace of execution of the current program: what every thread did, where and on what it waited. "
		"You can specify the duration in the seconds GET parameter. After you get the trace file, use the go tool "
		"trace command to investigate the trace.",
	.products = PRODUCT_TRACE,
	.open = collect_open,
	.close = collect_close,
	.cancel = collect_cancel,
	.seconds = 1,
	.fractions = true,
	.cannot = "Could not enable tracing",
	.less = tracer_status,
};
