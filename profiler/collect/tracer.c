/*
 * tracer.c - execution traces: any number of windows on the same sources.
 *
 *     kernel's switches  (trace_perf.c) ──┐
 *     waits, wake-ups    (trace_wait.c) ──┤
 *     threads, CPU samples, labels,     ──┴─> component-trace ──> every open window
 *     annotations        (trace_ring.c)          drain()            struct trace
 *
 * The first window starts the sources and the thread component-trace, which empties them
 * every 50 ms, reads how much of the heap is in use every 100 ms, and looks for threads
 * that have vanished.  The last one ends all of it.  A window is opened like this:
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
 * - A stack is interned when a record is read, not when it is written: a hooked write()
 *   in a signal handler must not wait for the stack table.
 * - Two exits of a thread are told, by the hook and by the kernel: with switches only the
 *   kernel's counts, since the thread runs on for a while after the hook.
 *
 * Heap: the estimate of the heap profile, not mallinfo2(), which takes malloc's locks.
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

#include "cpu.h"
#include "cpu_proc.h"
#include "heap.h"
#include "hooks_threads.h"
#include "labels.h"
#include "own_thread.h"
#include "stack_table.h"
#include "threads.h"
#include "trace_calls.h"
#include "trace_finish.h"
#include "trace_look.h"
#include "trace_perf.h"
#include "trace_reason.h"
#include "trace_ring.h"
#include "trace_told.h"
#include "trace_wait.h"
#include "waits.h"

#define DRAIN_NS    50000000LL
#define HEAP_DRAINS 2   /* the heap is read in one of so many */
#define WHY_BYTES   192

struct tracer_window {
	struct tracer_window *next;
	struct trace          trace;
	struct cpu_window    *cpu; /* NULL: no samples */
	uint64_t              lost_before, settled_ns;
};

static struct {
	pthread_mutex_t       life, lock;
	struct tracer_window *windows;
	_Atomic bool          on;
	_Atomic bool          by_switches;
	_Atomic bool          stop;
	bool                  started; /* life: thread exists */
	pthread_t             thread;
	char                  why[WHY_BYTES];   /* no switches */
	char                  waits[WHY_BYTES]; /* no waits */
	size_t                records;  /* lock: of all windows */
	uint64_t              lost;     /* lock: found no room in a window */
} tracer = { .life = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER };

static int64_t
clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

bool
tracer_is_on(void)
{
	return atomic_load_explicit(&tracer.on, memory_order_relaxed);
}

/* ---- from the sources to the windows; with the lock held ---- */

static void
window_add(struct tracer_window *w, const struct trace_record *r)
{
	if (tracer.records >= TRACER_RECORDS_MAX) {
		tracer.lost++;
		return;
	}
	if (r->stack)
		stack_table_ref(r->stack);
	if (trace_add(&w->trace, r) < 0)
		tracer.lost++;
	else
		tracer.records++;
}

/* Borrows the reference of the stack. */
static void
tell(const struct trace_record *r, const char *name, const char *text)
{
	struct trace_record mine = *r;

	for (struct tracer_window *w = tracer.windows; w; w = w->next) {
		if (w->trace.text_bytes >= TRACER_TEXTS_MAX && ((name && *name) || (text && *text))) {
			tracer.lost++;
			continue;
		}
		mine.name = name && *name ? trace_text(&w->trace, name, TRACE_EVENT_NAME_MAX) : 0;
		mine.text = text && *text ? trace_text(&w->trace, text, TRACE_EVENT_TEXT_MAX) : 0;
		window_add(w, &mine);
	}
}

/* The stack of an event, with a reference; who told of a birth has interned it. */
static uint32_t
stack_of(const struct trace_event *e)
{
	if (e->type == TRACE_CREATE)
		return (uint32_t)e->parent;
	return e->count ? stack_table_add(e->pcs, e->count) : 0;
}

static void
on_waited(const struct trace_event *e, struct trace_record *r)
{
	r->type = TRACE_WAIT;
	r->value = 0;
	tell(r, NULL, NULL);
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
	if (e->type == TRACE_EXIT && atomic_load(&tracer.by_switches))
		return;
	r.stack = stack_of(e);
	if (e->type == TRACE_CREATE)
		r.parent = 0;
	if (e->type == TRACE_EVENT_NAME)
		r.type = TRACE_RECORD_NAME;
	if (e->type == TRACE_EVENT_WAITED)
		on_waited(e, &r);
	tell(&r, e->name, e->text);
	if (r.stack)
		stack_table_unref(r.stack);
}

static void
on_kernel(void *arg, const struct trace_record *r)
{
	(void)arg;
	tell(r, NULL, NULL);
}

static void
on_kernel_name(void *arg, int32_t tid, uint64_t time_ns, const char *name)
{
	struct trace_record r = { .time_ns = time_ns, .tid = tid, .type = TRACE_RECORD_NAME, .cpu = TRACE_CPU_NONE };

	(void)arg;
	tell(&r, NULL, name);
}

static void
drain(void)
{
	trace_ring_drain(on_event, NULL);
	if (atomic_load(&tracer.by_switches))
		trace_perf_drain(on_kernel, on_kernel_name, NULL);
}

static uint64_t
lost_now(void)
{
	return tracer.lost + trace_ring_lost() + (atomic_load(&tracer.by_switches) ? trace_perf_lost() : 0);
}

/* ---- component-trace ---- */

static void
on_vanished(void *arg, int32_t tid, int64_t now_ns)
{
	struct trace_record r = { .time_ns = (uint64_t)now_ns, .tid = tid, .type = TRACE_EXIT, .cpu = TRACE_CPU_NONE };

	(void)arg;
	trace_wait_gone(tid, now_ns);
	if (atomic_load(&tracer.by_switches))
		return;
	pthread_mutex_lock(&tracer.lock);
	tell(&r, NULL, NULL);
	pthread_mutex_unlock(&tracer.lock);
}

static void
look_heap(void)
{
	struct trace_record r = { .type = TRACE_HEAP, .cpu = TRACE_CPU_NONE };

	if (heap_rate() == 0 || heap_live_bytes(&r.value) < 0)
		return;
	r.time_ns = (uint64_t)clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_lock(&tracer.lock);
	tell(&r, NULL, NULL);
	pthread_mutex_unlock(&tracer.lock);
}

static void *
run(void *arg)
{
	for (unsigned n = 0; !atomic_load(&tracer.stop); n++) {
		pthread_mutex_lock(&tracer.lock);
		drain();
		pthread_mutex_unlock(&tracer.lock);
		if (n % HEAP_DRAINS == 0) {
			look_heap();
			trace_look(on_vanished, NULL);
		}
		if (!atomic_load(&tracer.stop))
			trace_ring_sleep(DRAIN_NS);
	}
	return arg;
}

/* ---- start and stop; under life ---- */

static void
sources_stop(void)
{
	if (tracer.started) {
		atomic_store(&tracer.stop, true);
		trace_ring_ring();
		pthread_join(tracer.thread, NULL);
		tracer.started = false;
	}
	hooks_threads_watch(HOOKS_THREADS_TRACE, false);
	waits_trace(false);
	trace_calls_watch(false);
	trace_told_watch(false);
	atomic_store(&tracer.on, false);
	pthread_mutex_lock(&tracer.lock);
	trace_wait_close();
	if (atomic_load(&tracer.by_switches))
		trace_perf_close();
	atomic_store(&tracer.by_switches, false);
	trace_ring_close();
	pthread_mutex_unlock(&tracer.lock);
	trace_look_end();
}

static int
sources_start(void)
{
	int r;

	if (!cpu_proc_is_ours())
		return -EXDEV;
	pthread_mutex_lock(&tracer.lock);
	tracer.lost = tracer.records = 0;
	r = trace_ring_open();
	if (r == 0)
		r = trace_wait_open();
	if (r == 0)
		atomic_store(&tracer.by_switches, trace_perf_open(tracer.why, sizeof(tracer.why)) == 0);
	pthread_mutex_unlock(&tracer.lock);
	if (r == 0) {
		hooks_threads_watch(HOOKS_THREADS_TRACE, true);
		trace_calls_watch(true);
		trace_told_watch(true);
		snprintf(tracer.waits, sizeof(tracer.waits), "%s", waits_trace(true) < 0 ? waits_status() : "");
		atomic_store(&tracer.stop, false);
		r = own_thread_start("component-trace", run, NULL, &tracer.thread);
		tracer.started = r == 0;
	}
	if (r < 0)
		sources_stop();
	return r;
}

/* ---- windows ---- */

static struct tracer_window *
window_new(void)
{
	struct tracer_window *w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (w == MAP_FAILED)
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

	pthread_mutex_lock(&tracer.lock);
	mine.text = trace_text(&w->trace, text, TRACE_EVENT_TEXT_MAX);
	window_add(w, &mine);
	pthread_mutex_unlock(&tracer.lock);
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
		to.state = from->how == DUMP_QUIET ? TRACE_STATE_WAITING :
			   from->how == DUMP_SILENT ? TRACE_STATE_UNKNOWN : TRACE_STATE_RUNNING;
		to.reason = trace_reason_of_call(from->syscall);
		to.stack = from->count ? stack_table_add(d.pcs + from->first, from->count) : 0;
		r = trace_add_thread(&w->trace, &to);
		if (r == 0 && labels_plain(from->labels, text, sizeof(text))) {
			labels.tid = from->tid;
			window_tell(w, &labels, text);
		}
	}
	threads_dump_release(&d);
	return r;
}

static void
window_describe(struct tracer_window *w)
{
	struct trace *t = &w->trace;

	if (atomic_load(&tracer.by_switches)) {
		t->source = TRACE_BY_SWITCHES;
		t->cpus = trace_perf_cpus();
		trace_comment(t, "switches: perf_event_open, %u events", trace_perf_events());
	} else {
		t->source = TRACE_BY_HOOKS;
		trace_comment(t, "switches: hooks; %s", tracer.why);
	}
	if (*tracer.waits)
		trace_comment(t, "%s", tracer.waits);
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
	pthread_mutex_lock(&tracer.life);
	if (!tracer.windows)
		r = sources_start();
	if (r == 0) {
		if (cpu_window_open(&w->cpu) < 0)
			w->cpu = NULL;
		pthread_mutex_lock(&tracer.lock);
		drain();
		w->lost_before = lost_now();
		window_describe(w);
		w->trace.time_ns = clock_ns(CLOCK_REALTIME);
		w->trace.start_ns = (uint64_t)clock_ns(CLOCK_MONOTONIC);
		w->next = tracer.windows;
		tracer.windows = w;
		atomic_store(&tracer.on, true);
		pthread_mutex_unlock(&tracer.lock);
	}
	pthread_mutex_unlock(&tracer.life);
	if (r < 0) {
		window_free(w);
		return r;
	}
	r = window_threads(w);
	if (r < 0) {
		tracer_cancel(w);
		return r;
	}
	w->settled_ns = (uint64_t)clock_ns(CLOCK_MONOTONIC);
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
	window_add(w, &r);
	if (r.stack)
		stack_table_unref(r.stack);
}

static void
window_end(struct tracer_window *w)
{
	struct tracer_window **link;

	pthread_mutex_lock(&tracer.life);
	pthread_mutex_lock(&tracer.lock);
	drain();
	trace_wait_look(on_waiting, w);
	w->trace.lost = lost_now() - w->lost_before;
	for (link = &tracer.windows; *link != w;)
		link = &(*link)->next;
	*link = w->next;
	tracer.records -= w->trace.count < tracer.records ? w->trace.count : tracer.records;
	pthread_mutex_unlock(&tracer.lock);
	if (w->cpu)
		cpu_window_cancel(w->cpu);
	if (!tracer.windows)
		sources_stop();
	pthread_mutex_unlock(&tracer.life);
}

int
tracer_close(struct tracer_window *w, struct trace *ret)
{
	int r;

	w->trace.end_ns = (uint64_t)clock_ns(CLOCK_MONOTONIC);
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
	pthread_mutex_lock(&tracer.lock);
}

static void
fork_parent(void)
{
	pthread_mutex_unlock(&tracer.lock);
}

static void
fork_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	struct tracer_window        *w;

	atomic_store(&tracer.on, false);
	hooks_threads_watch(HOOKS_THREADS_TRACE, false);
	trace_calls_watch(false);
	trace_look_end();
	trace_wait_forked();
	trace_ring_forked();
	if (atomic_load(&tracer.by_switches))
		trace_perf_forked();
	atomic_store(&tracer.by_switches, false);
	while ((w = tracer.windows)) {
		tracer.windows = w->next;
		window_free(w);
	}
	tracer.started = false;
	tracer.life = fresh;
	tracer.lock = fresh;
}

__attribute__((constructor)) static void
fork_watch(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}
