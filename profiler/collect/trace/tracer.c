/*
 * tracer.c - execution traces: any number of windows on the same sources.
 *
 *     kernel's switches  (trace/perf.c) ──┐
 *     waits, wake-ups    (events/wait.c) ──┤
 *     threads, CPU samples, labels,     ──┴─> component-trace ──> every open window
 *     annotations        (events/ring.c)                             struct trace
 *
 * The life of a window is windows.h's subject.  component-trace empties the sources every 50 ms,
 * reads how much of the heap is in use every 100 ms, and looks for threads that have vanished.
 * A window is opened like this:
 *
 *     sources on ── start: window takes records ── dump of all threads ── ... ── end
 *
 * so that for each thread either a record or the dump says how it stood at the start;
 * trace/finish.c makes that out.  Only then component_trace_is_on() says so: what the
 * program tells from then on is in the trace.
 *
 * A window that goes on is told by a copy (tracer_so_far()).  The copy is made some records at a time, so that neither a
 * fork nor component-trace waits long for the lock.  That is safe as records are only added, and changed by nobody before
 * the window ends.
 *
 * What a stranger would get wrong:
 * - Where the kernel's switches cannot be had, waits alone tell when a thread runs
 *   (TRACE_BY_HOOKS).  Where they can, hooks still say why a thread left its processor.
 * - A stack is interned when a record is read, not when it is written: a hooked write()
 *   in a signal handler must not wait for the stack table.
 * - Two exits of a thread are told, by the hook and by the kernel: with switches only the
 *   kernel's counts, since the thread runs on for a while after the hook.
 *
 * Heap: the estimate of the heap profile, not mallinfo2(), which takes malloc's locks.
 *
 * Tests: tests/trace/test_tracer.c, tests/trace/measured_waits.t.
 */
#include <config.h>

#include "tracer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "collector.h"
#include "cpu_sampler.h"
#include "dump/threads.h"
#include "events/ring.h"
#include "events/wait.h"
#include "finish.h"
#include "hidden_frames.h"
#include "labels.h"
#include "look.h"
#include "pages.h"
#include "perf.h"
#include "reason.h"
#include "seccomp.h"
#include "stack_table.h"
#include "thread_events.h"
#include "threads.h"
#include "unwind.h"
#include "windows.h"

#define DRAIN_NS    50000000LL
#define HEAP_DRAINS 2 /* the heap is read in one of so many */
#define WHY_BYTES   192
#define COPY_PAUSE_NS 50000L /* between two parts of a copy: who takes a lock again at once leaves it to nobody */

struct tracer_window {
	struct window      window;
	struct trace       trace;
	struct cpu_window *cpu; /* NULL: no samples */
	uint64_t           settled_ns;
	size_t             told, told_texts; /* of a copy: how many records and bytes there are to copy */
};

static struct windows windows;
static void forked(void);

/* By its lock. */
static struct {
	_Atomic bool by_switches;
	char         waits[WHY_BYTES]; /* no waits */
	size_t       records; /* of all windows */
} tracer;

/* "" or why there are no switches.  By a lock of its own: the server asks on its loop, and where a trace begins or
 * ends the other one may be held for long. */
static char            why[WHY_BYTES];
static pthread_mutex_t why_lock = PTHREAD_MUTEX_INITIALIZER;

/* "" or why the last one had no switches of the kernel's.  Not from signal handlers. */
static void
tracer_status(char *buf, size_t size)
{
	pthread_mutex_lock(&why_lock);
	snprintf(buf, size, "%s%s", *why ? "when the last one began, switches came from the hooks alone: " : "", why);
	pthread_mutex_unlock(&why_lock);
}

/* ---- what the sources tell, on its way to every window; under the lock ---- */

static void
window_add(struct tracer_window *w, const struct trace_record *r)
{
	if (tracer.records >= TRACER_RECORDS_MAX) {
		w->trace.lost++;
		return;
	}
	stack_table_ref(r->stack);
	if (trace_add(&w->trace, r) < 0)
		w->trace.lost++;
	else
		tracer.records++;
}

/* To every window; borrows the reference of the stack. */
static void
tell(const struct trace_record *r, const char *name, const char *text)
{
	struct trace_record mine = *r;

	for WINDOWS_EACH(struct tracer_window, w, &windows) {
		if (w->trace.text_bytes >= TRACER_TEXTS_MAX && ((name && *name) || (text && *text))) {
			w->trace.lost++;
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
	uintptr_t pcs[STACK_FRAMES_MAX];
	unsigned  count = e->count < STACK_FRAMES_MAX ? e->count : STACK_FRAMES_MAX;
	int       truncated;

	if (e->type == TRACE_CREATE)
		return (uint32_t)e->parent;
	if (count == 0)
		return 0;
	memcpy(pcs, e->pcs, count * sizeof(*pcs));
	count = hidden_frames_drop(pcs, unwind_prove(pcs, count, &truncated));
	return stack_table_add(pcs, count);
}

static void
on_waited(const struct trace_event *e, struct trace_record *r)
{
	r->type = TRACE_WAIT;
	r->value = 0;
	tell(r, NULL, NULL);
	r->type = TRACE_WAIT_END;
	r->time_ns = e->value;
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
	events_ring_drain(on_event, NULL);
	if (atomic_load(&tracer.by_switches))
		trace_perf_drain(on_kernel, on_kernel_name, NULL);
}

static uint64_t
lost(void)
{
	return events_ring_lost() + (atomic_load(&tracer.by_switches) ? trace_perf_lost() : 0);
}

/* ---- the thread ---- */

static void
on_vanished(void *arg, int32_t tid, int64_t now_ns)
{
	struct trace_record r = { .time_ns = (uint64_t)now_ns, .tid = tid, .type = TRACE_EXIT, .cpu = TRACE_CPU_NONE };

	(void)arg;
	events_wait_gone(tid, now_ns);
	if (atomic_load(&tracer.by_switches))
		return;
	pthread_mutex_lock(&windows.lock);
	tell(&r, NULL, NULL);
	pthread_mutex_unlock(&windows.lock);
}

static void
look_heap(void)
{
	const struct collector *c = COLLECTOR_WITH(in_use);
	struct trace_record     r = { .type = TRACE_HEAP, .cpu = TRACE_CPU_NONE };

	if (!c || c->rate->get() == 0 || c->in_use(&r.value) < 0)
		return;
	r.time_ns = (uint64_t)trace_now_ns();
	pthread_mutex_lock(&windows.lock);
	tell(&r, NULL, NULL);
	pthread_mutex_unlock(&windows.lock);
}

static void *
run(void *arg)
{
	for (unsigned n = 0; our_loop_goes_on(&windows.loop); n++) {
		pthread_mutex_lock(&windows.lock);
		drain();
		pthread_mutex_unlock(&windows.lock);
		if (n % HEAP_DRAINS == 0) {
			look_heap();
			trace_look(on_vanished, NULL);
		}
		if (our_loop_goes_on(&windows.loop))
			events_ring_sleep(DRAIN_NS);
	}
	return arg;
}

static int
start(void)
{
	const struct collector *waits = COLLECTOR_WITH(tell_waits);
	char                    text[WHY_BYTES];
	int                     r;

	pthread_mutex_lock(&windows.lock);
	tracer.records = 0;
	r = events_ring_open();
	if (r == 0)
		r = events_wait_open();
	pthread_mutex_unlock(&windows.lock);
	if (r < 0)
		return r;
	/* This takes long, and a fork waits for that lock. */
	atomic_store(&tracer.by_switches, trace_perf_open(text, sizeof(text)) == 0);
	pthread_mutex_lock(&why_lock);
	snprintf(why, sizeof(why), "%s", text);
	pthread_mutex_unlock(&why_lock);
	thread_events_watch(THREAD_EVENTS_TRACE, true);
	trace_calls_watch(true);
	trace_threads_watch(true);
	snprintf(tracer.waits, sizeof(tracer.waits), "%s", waits && waits->tell_waits(true) < 0 ? waits->status() : "");
	return 0;
}

static void
stop(int err)
{
	const struct collector *waits = COLLECTOR_WITH(tell_waits);

	(void)err;
	thread_events_watch(THREAD_EVENTS_TRACE, false);
	if (waits)
		waits->tell_waits(false);
	trace_calls_watch(false);
	trace_threads_watch(false);
	events_ring_want(false);
	pthread_mutex_lock(&windows.lock);
	events_wait_close();
	pthread_mutex_unlock(&windows.lock);
	/* These take long, and a fork waits for that lock. */
	if (atomic_load(&tracer.by_switches))
		trace_perf_close();
	atomic_store(&tracer.by_switches, false);
	events_ring_close();
	trace_look_end();
}

/* ---- windows ---- */

static struct tracer_window *
window_new(void)
{
	struct tracer_window *w = pages_map(sizeof(*w));

	if (w)
		trace_init(&w->trace);
	return w;
}

static void
window_free(struct tracer_window *w)
{
	trace_release(&w->trace);
	pages_unmap(w, sizeof(*w));
}

/* While others may tell it something, too. */
static void
window_tell(struct tracer_window *w, const struct trace_record *r, const char *text)
{
	struct trace_record mine = *r;

	pthread_mutex_lock(&windows.lock);
	mine.text = trace_text(&w->trace, text, TRACE_EVENT_TEXT_MAX);
	window_add(w, &mine);
	pthread_mutex_unlock(&windows.lock);
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
		pthread_mutex_lock(&windows.lock); /* a child reads the list, which may move */
		r = trace_add_thread(&w->trace, &to);
		pthread_mutex_unlock(&windows.lock);
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
	const struct collector *heap = COLLECTOR_WITH(in_use), *cpu = COLLECTOR_WITH(cpu);
	struct trace           *t = &w->trace;

	if (atomic_load(&tracer.by_switches)) {
		t->source = TRACE_BY_SWITCHES;
		t->cpus = trace_perf_cpus();
		trace_comment(t, "switches: perf_event_open, %u events", trace_perf_events());
	} else {
		t->source = TRACE_BY_HOOKS;
		trace_comment(t, "switches: hooks; %s", why); /* written under life, too */
	}
	if (*tracer.waits)
		trace_comment(t, "%s", tracer.waits);
	if (!w->cpu && cpu)
		trace_comment(t, "no CPU samples: %s", cpu->cpu->status());
	if (heap && heap->rate->get() == 0)
		trace_comment(t, "no heap: %s", *heap->status() ? heap->status() : "its sampling is off");
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
	stack_table_unref(r.stack);
}

static void
begin(struct window *window)
{
	struct tracer_window *w = (struct tracer_window *)window;

	window_describe(w);
	w->trace.time_ns = window->time_ns;
	w->trace.start_ns = (uint64_t)window->begin_ns;
	events_ring_want(true);
}

static void
end(struct window *window)
{
	struct tracer_window *w = (struct tracer_window *)window;

	events_wait_look(on_waiting, w);
	w->trace.end_ns = (uint64_t)window->end_ns;
	tracer.records -= w->trace.count < tracer.records ? w->trace.count : tracer.records;
}

/* But for its records and texts. */
static int
copy(const struct window *from, struct window *to)
{
	const struct tracer_window *w = (const struct tracer_window *)from;
	struct tracer_window       *now = (struct tracer_window *)to;

	now->told = w->trace.count;
	now->told_texts = w->trace.text_bytes;
	return tracer.records + now->told > TRACER_RECORDS_MAX ? -ENOMEM : trace_copy_begin(&w->trace, &now->trace);
}

static void
forget(struct window *w)
{
	trace_forget(&((struct tracer_window *)w)->trace);
	pages_unmap(w, sizeof(struct tracer_window));
}

static struct windows windows = {
	.name = "component-trace", .run = run, .start = start, .stop = stop, .settle = drain, .lost = lost,
	.begin = begin, .end = end, .copy = copy, .forget = forget, .forked = forked, .loop = { .wake = events_ring_ring }, WINDOWS_INIT,
};

int
tracer_open(struct tracer_window **ret)
{
	const struct collector *cpu = COLLECTOR_WITH(cpu);
	struct tracer_window   *w = window_new();
	int                     r;

	if (!w)
		return -ENOMEM;
	seccomp_look(); /* before the hooks are on */
	if (!cpu || cpu->cpu->open(&w->cpu, false) < 0)
		w->cpu = NULL;
	r = windows_open(&windows, &w->window);
	if (r < 0) {
		if (w->cpu)
			cpu->cpu->cancel(w->cpu);
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

static void
window_end(struct tracer_window *w)
{
	windows_end(&windows, &w->window);
	w->trace.lost += w->window.lost;
	if (w->cpu)
		COLLECTOR_WITH(cpu)->cpu->cancel(w->cpu);
}

/* The trace of a window that is told nothing more; settled_ns is the window's. */
static int
window_finish(struct tracer_window *w, uint64_t settled_ns, struct trace *ret)
{
	int r = trace_finish(&w->trace, settled_ns);

	if (r == 0) {
		*ret = w->trace;
		trace_init(&w->trace);
	}
	return r;
}

int
tracer_close(struct tracer_window *w, struct trace *ret)
{
	int r;

	window_end(w);
	r = window_finish(w, w->settled_ns, ret);
	window_free(w);
	return r;
}

static int
rest_copy(const struct tracer_window *w, struct tracer_window *now)
{
	const struct timespec pause = { 0, COPY_PAUSE_NS };
	int                   r;

	for (;;) {
		pthread_mutex_lock(&windows.lock);
		r = trace_copy_some(&w->trace, now->told, now->told_texts, &now->trace);
		pthread_mutex_unlock(&windows.lock);
		if (r != 1)
			return r;
		nanosleep(&pause, NULL);
	}
}

int
tracer_so_far(const struct tracer_window *w, struct trace *ret)
{
	struct tracer_window *now = window_new();
	int                   r = now ? windows_so_far(&windows, &w->window, &now->window) : -ENOMEM;

	if (!now)
		return r;
	if (r == 0)
		r = rest_copy(w, now);
	now->trace.lost += now->window.lost;
	if (r == 0)
		r = window_finish(now, w->settled_ns, ret);
	window_free(now);
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
forked(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	why_lock = fresh;
	events_ring_want(false);
	thread_events_watch(THREAD_EVENTS_TRACE, false);
	trace_calls_watch(false);
	trace_look_end();
	events_wait_close();
	events_ring_forked();
	trace_perf_forked();
	atomic_store(&tracer.by_switches, false);
	windows_forked(&windows);
}

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
collect_close(void *window, const struct collect_params *params, struct product *ret)
{
	(void)params;
	ret->type = PRODUCT_TRACE;
	return tracer_close(window, &ret->trace);
}

static int
collect_so_far(void *window, const struct collect_params *params, struct product *ret)
{
	(void)params;
	ret->type = PRODUCT_TRACE;
	return tracer_so_far(window, &ret->trace);
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
	.so_far = collect_so_far,
	.cancel = collect_cancel,
	.windows = &windows,
	.seconds = 1,
	.fractions = true,
	.cannot = "Could not enable tracing",
	.less = tracer_status,
};
