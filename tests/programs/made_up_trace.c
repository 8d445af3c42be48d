/*
 * made_up_trace.c - a program that writes a made-up execution trace of itself to its
 * standard output, for tests/encode/gotrace.t to open with other people's readers.
 *
 *     made_up_trace FORMAT SOURCE MILLISECONDS [SEED DROP JITTER]
 *
 * FORMAT is go1.19, go1.22 or perfetto; SOURCE is switches or hooks.  A simulator runs
 * threads on two CPUs and records what a collector would; then DROP percent of the
 * records are left out and times are moved by up to JITTER nanoseconds.  What the
 * threads waited in truth is printed to standard error, one reason a line.
 */
#include <config.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "encode.h"
#include "named_function.h"
#include "stack_table.h"

#define LIMIT    ((size_t)64 << 20)
#define CPUS     2
#define SLICE    1500000u  /* ns a thread runs before others get their turn */
#define TICK     1000000u  /* ns between samples of a thread */
#define LATE     20000u    /* ns from a wake to a CPU, at least */
#define START    (1000000000000ull)
#define MS       1000000ull
#define THREADS  64
#define MUTEXES  2

FUNCTION(lock_mutex)
FUNCTION(wait_for_work)
FUNCTION(receive)
FUNCTION(take_a_nap)
FUNCTION(flush_file)
FUNCTION(crunch)
FUNCTION(reconcile)
FUNCTION(worker_main)
FUNCTION(consumer_main)
FUNCTION(producer_main)
FUNCTION(spinner_main)
FUNCTION(idle_main)
FUNCTION(helper_main)
FUNCTION(program_main)

extern void _start(void);
extern int  __libc_start_main(void);
extern int  clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);

static uintptr_t inlined_pc; /* a call within an inlined function */

__attribute__((noinline, noclone)) static void
note_caller(void)
{
	inlined_pc = (uintptr_t)__builtin_return_address(0) - 1;
}

static inline __attribute__((always_inline)) void
step_inlined(void)
{
	note_caller();
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline, noclone)) void step_around(void);
void
step_around(void)
{
	step_inlined();
	__asm__ volatile("" ::: "memory");
}

enum op {
	OP_RUN, OP_SLEEP, OP_RECV, OP_FLUSH, OP_LOCK, OP_UNLOCK, OP_WAIT, OP_SIGNAL, OP_BEGIN, OP_END, OP_REGION,
	OP_REGION_END, OP_LOG, OP_SPAWN, OP_LABEL, OP_EXIT, OP_AGAIN,
};

struct step {
	enum op     op;
	uint64_t    n;
	const char *name;
};

static const struct step main_steps[] = {
	{ OP_REGION, 0, "housekeeping" }, { OP_RUN, 300000, 0 }, { OP_REGION_END, 0, "housekeeping" },
	{ OP_SPAWN, 0, 0 }, { OP_FLUSH, MS, 0 }, { OP_SLEEP, 4 * MS, 0 }, { OP_AGAIN, 0, 0 },
};
static const struct step worker_steps[] = {
	{ OP_BEGIN, 0, "request" }, { OP_LABEL, 0, "request=7" }, { OP_REGION, 1, "reconcile" }, { OP_RUN, 200000, 0 },
	{ OP_REGION, 1, "locked" }, { OP_LOCK, 0, 0 }, { OP_RUN, 900000, 0 }, { OP_UNLOCK, 0, 0 },
	{ OP_REGION_END, 1, "locked" }, { OP_LOG, 1, "h\xc3\xb6he 7" }, { OP_REGION_END, 1, "reconcile" },
	{ OP_END, 0, 0 }, { OP_LABEL, 0, "" }, { OP_RECV, 600000, 0 }, { OP_AGAIN, 0, 0 },
};
static const struct step consumer_steps[] = { { OP_WAIT, 0, 0 }, { OP_RUN, 120000, 0 }, { OP_AGAIN, 0, 0 } };
static const struct step producer_steps[] = {
	{ OP_RUN, 250000, 0 }, { OP_SIGNAL, 0, 0 }, { OP_RUN, 10000, 0 }, { OP_SLEEP, 1700000, 0 }, { OP_AGAIN, 0, 0 },
};
static const struct step spinner_steps[] = { { OP_RUN, 5 * MS, 0 }, { OP_AGAIN, 0, 0 } };
static const struct step helper_steps[] = { { OP_RUN, 400000, 0 }, { OP_RECV, 300000, 0 }, { OP_FLUSH, 200000, 0 }, { OP_RUN, 50000, 0 }, { OP_EXIT, 0, 0 } };

enum sim_state { NONE, READY, RUNS, SLEEPS, LOCKS, WAITS, GONE };

struct sim {
	int                tid;
	int              (*begin)(int);
	const struct step *steps;
	const char        *name;
	bool               is_main;
	enum sim_state     state;
	size_t             step;
	uint64_t           left, until, ready_at, ran, slice, blocked_at, task, tick;
	uint64_t           runnable_since; /* 0: nobody saw it become so, or it never ran yet */
	uint64_t           labelled_since; /* on a CPU; 0: it is not there, or has no label */
	enum trace_reason  reason;
	bool               has_label, waits;
	int                mutex;
	unsigned           cpu;
};

static struct trace trace;
static struct sim   sims[THREADS];
static size_t       sim_count;
static struct sim  *on_cpu[CPUS], *owner[MUTEXES];
static uint64_t     now, next_task, truth[TRACE_SLEEP + 1], runnable, labelled;
static unsigned     seed, drop, jitter;
static bool         hooks;

static unsigned
any(unsigned below)
{
	seed = seed * 1103515245u + 12345;
	return (seed >> 8) % below;
}

static uintptr_t
inside(int (*f)(int))
{
	return (uintptr_t)f + 8;
}

static uint32_t
stack_of(const struct sim *t, int (*leaf)(int))
{
	uintptr_t pcs[8];
	unsigned  n = 0;

	if (leaf)
		pcs[n++] = inside(leaf);
	if (t->begin == worker_main) {
		pcs[n++] = inlined_pc;
		pcs[n++] = inside(reconcile);
	}
	pcs[n++] = inside(t->begin);
	if (t->is_main) {
		pcs[n++] = (uintptr_t)__libc_start_main + 8;
		pcs[n++] = (uintptr_t)_start + 8;
	} else {
		pcs[n++] = (uintptr_t)clone + 8;
	}
	return stack_table_add(pcs, n);
}

static void
record(struct trace_record r, const struct sim *t)
{
	r.tid = t->tid;
	r.time_ns = now;
	if (r.type == TRACE_IN || r.type == TRACE_OUT) {
		if (hooks)
			return;
		r.cpu = (uint16_t)t->cpu;
	}
	if (drop && any(100) < drop) {
		if (r.stack)
			stack_table_unref(r.stack);
		return;
	}
	if (jitter)
		r.time_ns += any(2 * jitter + 1) - jitter;
	if (trace_add(&trace, &r) < 0)
		abort();
}

static void
entry(struct sim *t, uint64_t born, enum trace_state state, enum trace_reason reason, uint32_t stack)
{
	struct trace_thread thread = { .tid = t->tid, .state = (uint8_t)state, .reason = (uint8_t)reason, .stack = stack,
		.born_ns = born, .routine = t->is_main ? 0 : (uintptr_t)t->begin, .main = t->is_main };

	snprintf(thread.name, sizeof(thread.name), "%s", t->name);
	if (trace_add_thread(&trace, &thread) < 0)
		abort();
}

static struct sim *
sim_new(int tid, int (*begin)(int), const struct step *steps, const char *name)
{
	struct sim *t = NULL;

	for (size_t i = 0; i < sim_count; i++)
		if (sims[i].state == GONE)
			t = &sims[i];
	if (!t) {
		if (sim_count == THREADS)
			abort();
		t = &sims[sim_count++];
	}
	*t = (struct sim){ .tid = tid, .begin = begin, .steps = steps, .name = name, .state = READY, .ready_at = now };
	return t;
}

static void
label_time(struct sim *t, bool from_now)
{
	if (t->labelled_since)
		labelled += now - t->labelled_since;
	t->labelled_since = from_now && t->has_label ? now : 0;
}

static void
off(struct sim *t, bool preempted)
{
	label_time(t, false);
	t->runnable_since = preempted ? now : 0;
	record((struct trace_record){ .type = TRACE_OUT, .flags = preempted ? TRACE_PREEMPTED : 0 }, t);
	on_cpu[t->cpu] = NULL;
	t->ready_at = now;
}

static void
block(struct sim *t, enum sim_state state, enum trace_reason reason, int (*leaf)(int))
{
	record((struct trace_record){ .type = TRACE_WAIT, .reason = (uint8_t)reason, .stack = stack_of(t, leaf) }, t);
	now += 700;
	t->state = state;
	t->reason = reason;
	t->waits = true;
	t->blocked_at = now;
	off(t, false);
}

static void
wake(struct sim *waker, struct sim *t)
{
	if (waker)
		record((struct trace_record){ .type = TRACE_WAKE, .other = t->tid, .stack = stack_of(waker, crunch) }, waker);
	if (waker)
		truth[t->reason] += now - t->blocked_at;
	t->state = READY;
	t->ready_at = now + LATE;
	t->runnable_since = waker ? now : 0;
	if (waker)
		t->blocked_at = 0;
}

static void
spawn(struct sim *t)
{
	static int tids[] = { 2001, 2002 };
	static int turn;
	struct sim *born;
	int         tid = tids[turn++ % 2];

	for (size_t i = 0; i < sim_count; i++)
		if (sims[i].tid == tid && sims[i].state != GONE)
			return;
	born = sim_new(tid, helper_main, helper_steps, "helper");
	entry(born, now, TRACE_STATE_UNKNOWN, 0, 0);
	record((struct trace_record){ .type = TRACE_CREATE, .other = t->tid, .stack = stack_of(t, crunch),
		.value = (uintptr_t)helper_main }, born);
	born->ready_at = now + LATE;
}

/* A region, task or log; n of a step: within the task. */
static void
annotate(struct sim *t, const struct step *s, enum trace_type type)
{
	struct trace_record r = { .type = (uint8_t)type, .value = s->n ? t->task : 0, .stack = stack_of(t, NULL) };

	if (type == TRACE_TASK_BEGIN || type == TRACE_TASK_END)
		r.value = t->task;
	if (type == TRACE_LOG) {
		r.name = trace_text(&trace, "note", 64);
		r.text = trace_text(&trace, s->name, 1024);
	} else if (s->name) {
		r.name = trace_text(&trace, s->name, 64);
	}
	record(r, t);
}

static void
labels(struct sim *t, const char *text)
{
	record((struct trace_record){ .type = TRACE_LABELS, .text = trace_text(&trace, text, 64) }, t);
	t->has_label = *text;
	label_time(t, true);
}

/* One step of a thread that runs and is not in the middle of one. */
static void
step(struct sim *t)
{
	const struct step *s = &t->steps[t->step++];

	now += 50;
	switch (s->op) {
	case OP_RUN:
		t->left = s->n + any(1000);
		break;
	case OP_SLEEP:
		t->until = now + s->n;
		block(t, SLEEPS, TRACE_SLEEP, take_a_nap);
		break;
	case OP_RECV:
		t->until = now + s->n;
		block(t, SLEEPS, TRACE_NETWORK, receive);
		break;
	case OP_FLUSH:
		t->until = now + s->n;
		block(t, SLEEPS, TRACE_OTHER, flush_file);
		break;
	case OP_LOCK:
		t->mutex = (int)s->n;
		if (owner[s->n]) {
			block(t, LOCKS, TRACE_SYNC, lock_mutex);
			t->step--; /* tried again */
		} else {
			owner[s->n] = t;
		}
		break;
	case OP_UNLOCK:
		owner[s->n] = NULL;
		for (size_t i = 0; i < sim_count; i++)
			if (sims[i].state == LOCKS && sims[i].mutex == (int)s->n) {
				wake(t, &sims[i]);
				break;
			}
		break;
	case OP_WAIT:
		block(t, WAITS, TRACE_COND, wait_for_work);
		break;
	case OP_SIGNAL:
		for (size_t i = 0; i < sim_count; i++)
			if (sims[i].state == WAITS) {
				wake(t, &sims[i]);
				break;
			}
		break;
	case OP_BEGIN:
		t->task = ++next_task;
		annotate(t, s, TRACE_TASK_BEGIN);
		break;
	case OP_END:
		annotate(t, s, TRACE_TASK_END);
		break;
	case OP_REGION:
		annotate(t, s, TRACE_REGION_BEGIN);
		break;
	case OP_REGION_END:
		annotate(t, s, TRACE_REGION_END);
		break;
	case OP_LOG:
		annotate(t, s, TRACE_LOG);
		break;
	case OP_SPAWN:
		spawn(t);
		break;
	case OP_LABEL:
		labels(t, s->name);
		break;
	case OP_EXIT:
		record((struct trace_record){ .type = TRACE_EXIT }, t);
		on_cpu[t->cpu] = NULL;
		t->state = GONE;
		break;
	case OP_AGAIN:
		t->step = 0;
		break;
	}
}

static void
on(struct sim *t, unsigned cpu)
{
	bool waited = t->waits;

	t->waits = false;
	t->cpu = cpu;
	on_cpu[cpu] = t;
	if (waited && t->blocked_at)
		truth[t->reason] += now - t->blocked_at;
	if (t->runnable_since)
		runnable += now - t->runnable_since;
	record((struct trace_record){ .type = TRACE_IN }, t);
	label_time(t, true);
	t->blocked_at = 0;
	t->reason = TRACE_OTHER;
	t->state = RUNS;
	t->slice = 0;
	if (waited)
		record((struct trace_record){ .type = TRACE_WAIT_END }, t);
}

static struct sim *
next_ready(void)
{
	struct sim *best = NULL;

	for (size_t i = 0; i < sim_count; i++)
		if (sims[i].state == READY && sims[i].ready_at <= now && (!best || sims[i].ready_at < best->ready_at))
			best = &sims[i];
	return best;
}

/* Time goes on by one microsecond, in which a CPU does at most one thing. */
static void
simulate(uint64_t end)
{
	uint64_t heap = 1 << 20;

	while (now < end) {
		uint64_t before = now += 1000;

		for (size_t i = 0; i < sim_count; i++)
			if (sims[i].state == SLEEPS && sims[i].until <= now)
				wake(NULL, &sims[i]);
		for (unsigned c = 0; c < CPUS; c++) {
			struct sim *t = on_cpu[c];

			if (!t && (t = next_ready()))
				on(t, c);
			if (!(t = on_cpu[c]))
				continue;
			t->slice += 1000;
			if (++t->tick * 1000 == TICK) {
				record((struct trace_record){ .type = TRACE_SAMPLE, .cpu = (uint16_t)c,
					.stack = stack_of(t, crunch), .value = 1 }, t);
				t->tick = 0;
			}
			if (t->slice > SLICE && next_ready()) {
				t->state = READY;
				off(t, true);
			} else if (t->left > 1000) {
				t->left -= 1000;
			} else {
				t->left = 0;
				step(t);
			}
		}
		now = before;
		if (now % (5 * MS) == 0)
			record((struct trace_record){ .type = TRACE_HEAP, .value = heap += 4096 },
				&(struct sim){ .tid = 0 });
	}
}

static void
cast(void)
{
	struct sim *t = sim_new(1001, program_main, main_steps, "sample");

	t->is_main = true;
	entry(t, 0, TRACE_STATE_UNKNOWN, 0, stack_of(t, take_a_nap));
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = { "worker-0", "worker-1", "worker-2" };

		t = sim_new(1002 + i, worker_main, worker_steps, names[i]);
		t->ready_at = now + (uint64_t)i * 90000;
		entry(t, 0, TRACE_STATE_RUNNING, 0, 0);
	}
	t = sim_new(1005, consumer_main, consumer_steps, "consumer");
	entry(t, 0, TRACE_STATE_RUNNING, 0, 0);
	t = sim_new(1006, producer_main, producer_steps, "sample");
	entry(t, 0, TRACE_STATE_RUNNING, 0, 0);
	t = sim_new(1007, spinner_main, spinner_steps, "sample");
	entry(t, 0, TRACE_STATE_RUNNING, 0, 0);
	t = sim_new(1008, idle_main, helper_steps, "component-http");
	t->state = NONE;
	entry(t, 0, TRACE_STATE_WAITING, TRACE_NETWORK, stack_of(t, receive));
}

static int
to_stdout(void *arg, const void *data, size_t size)
{
	(void)arg;
	return fwrite(data, 1, size, stdout) == size ? 0 : -1;
}

static const struct trace_format *
format_of(const char *name)
{
	if (!strcmp(name, "go1.19"))
		return &gotrace_v1;
	return strcmp(name, "go1.22") ? &perfetto_format : &gotrace_v2;
}

int
main(int argc, char **argv)
{
	struct symbols *symbols;
	int             r;

	if (argc < 4) {
		fprintf(stderr, "%s: FORMAT SOURCE MILLISECONDS [SEED DROP JITTER]\n", argv[0]);
		return 2;
	}
	step_around();
	hooks = !strcmp(argv[2], "hooks");
	seed = argc > 4 ? (unsigned)atoi(argv[4]) : 1;
	drop = argc > 5 ? (unsigned)atoi(argv[5]) : 0;
	jitter = argc > 6 ? (unsigned)atoi(argv[6]) : 0;
	trace_init(&trace);
	trace.start_ns = now = START;
	trace.end_ns = START + (uint64_t)atoi(argv[3]) * MS;
	trace.time_ns = 1700000000123000000;
	trace.source = hooks ? TRACE_BY_HOOKS : TRACE_BY_SWITCHES;
	trace.cpus = hooks ? 0 : CPUS;
	trace.lost = 17;
	trace_comment(&trace, "source: a simulator");
	cast();
	simulate(trace.end_ns);
	if (trace_sort(&trace) < 0 || symbols_open(LIMIT, &symbols) < 0)
		return 1;
	for (size_t i = 0; i < sim_count; i++)
		label_time(&sims[i], false);
	fprintf(stderr, "records %zu\nsync %llu\ncond %llu\nnetwork %llu\nfile %llu\nrunnable %llu\nlabelled %llu\n", trace.count,
		(unsigned long long)truth[TRACE_SYNC], (unsigned long long)truth[TRACE_COND],
		(unsigned long long)truth[TRACE_NETWORK], (unsigned long long)truth[TRACE_OTHER], (unsigned long long)runnable, (unsigned long long)labelled);
	r = encode_trace(&trace, format_of(argv[1]), symbols, to_stdout, NULL);
	symbols_close(symbols);
	trace_release(&trace);
	return r < 0 || fflush(stdout) || stack_table_bytes() ? 1 : 0;
}
