/*
 * perfetto.c - an execution trace as ui.perfetto.dev and trace_processor read it.
 *
 * A file is a sequence of TracePackets.  The CPUs' rows are what the kernel's tracer
 * would have said (sched_switch, sched_waking, in bundles by CPU), so that the tables of
 * scheduling, thread states and wakers work.  Waits with their stacks, regions, logs and
 * tasks are track events; CPU samples are samples of perf; names are interned.
 *
 * What a stranger would get wrong:
 * - What is interned must be written before what uses it, in one sequence; the bundles
 *   of the CPUs may come at any time, readers sort.
 * - Frames without a mapping are not shown: all share one, the program's.
 * - Without switches there are no CPUs: then the threads' rows have waits alone.
 *
 * Why not Chrome's JSON: it is ten times larger, has no scheduling, and its times are
 * fractions of microseconds.
 *
 * Tests: tests/encode/gotrace.t
 */
#include <config.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "perfetto_message.h"
#include "varint.h"

/* Tracks; the rest are threads, by serial, and tasks. */
#define ROW_PROCESS 1
#define ROW_HEAP    2
#define ROW_THREADS ((uint64_t)1 << 40)
#define ROW_TASKS   ((uint64_t)1 << 62)

struct perfetto {
	struct trace_stream **cpus;
	struct table          frames; /* written */
	struct table          tasks;  /* that have a row */
	int32_t               pid;
	uint64_t              offset; /* from a story's time to the clock's */
};

/* ---- what is interned ---- */

/* Functions' and files' names have numbers of one kind here, and of two there. */
static int
write_text(void *arg, uint64_t id, const char *s, size_t size)
{
	perfetto_intern_text(arg, INTERNED_FUNCTIONS, id, s, size);
	perfetto_intern_text(arg, INTERNED_FILES, id, s, size);
	return 0;
}

static int
write_stack(void *arg, uint64_t id, const struct trace_frame *frames, unsigned count)
{
	struct trace_writer *w = arg;
	struct perfetto     *p = w->state;

	return perfetto_intern_stack(w, &p->frames, id, frames, count);
}

/* When it was, by the clock. */
static uint64_t
clock_of(const struct trace_writer *w, const struct story_event *e)
{
	const struct perfetto *p = w->state;

	return e->time + p->offset;
}

/* ---- the CPUs ---- */

static void
bundle_head(struct lines *out, const struct trace_stream *s, size_t size)
{
	struct perfetto_message cpu, m;
	uint8_t                 head[1 + VARINT_MAX];
	size_t                  n = 1;

	cpu.size = m.size = 0;
	perfetto_number(&cpu, BUNDLE_CPU, s->id);
	perfetto_number(&m, PACKET_SEQUENCE, SEQUENCE);
	m.size += varint_write(m.data + m.size, PACKET_FTRACE << 3 | 2);
	m.size += varint_write(m.data + m.size, cpu.size + size);
	head[0] = TRACE_PACKET << 3 | 2;
	n += varint_write(head + n, m.size + cpu.size + size);
	lines_bytes(out, head, n);
	lines_bytes(out, m.data, m.size);
	lines_bytes(out, cpu.data, cpu.size);
}

static int
ftrace(struct trace_writer *w, const struct story_event *e, int32_t tid, unsigned field, const struct perfetto_message *of)
{
	struct perfetto        *p = w->state;
	struct perfetto_message event, m;

	event.size = m.size = 0;
	if (!p->cpus[e->cpu])
		p->cpus[e->cpu] = trace_stream_open(&w->streams, e->cpu);
	if (!p->cpus[e->cpu])
		return -ENOMEM;
	perfetto_number(&event, FTRACE_TIME, clock_of(w, e));
	perfetto_number(&event, FTRACE_PID, (uint32_t)tid);
	perfetto_inner(&event, field, of);
	perfetto_inner(&m, BUNDLE_EVENT, &event);
	trace_stream_delta(&w->streams, p->cpus[e->cpu], e->time, m.size);
	trace_stream_add(&w->streams, p->cpus[e->cpu], m.data, m.size);
	return 0;
}

static const char *
name_of(const struct story_thread *t)
{
	return t->info && t->info->name[0] ? t->info->name : "thread";
}

/* One thread's turn begins, or ends with the state in which the kernel has it then. */
static int
put_switch(struct trace_writer *w, const struct story_event *e, bool in, uint64_t state)
{
	static const char       idle[] = "swapper";
	struct perfetto_message m;

	m.size = 0;
	if (w->trace->source == TRACE_BY_HOOKS)
		return 0;
	perfetto_text(w, &m, SWITCH_FROM_NAME, in ? idle : name_of(e->on));
	perfetto_number(&m, SWITCH_FROM, in ? 0 : (uint32_t)e->on->tid);
	perfetto_number(&m, SWITCH_FROM_PRIO, PRIO);
	perfetto_number(&m, SWITCH_STATE, in ? STATE_RUNNABLE : state);
	perfetto_text(w, &m, SWITCH_TO_NAME, in ? name_of(e->on) : idle);
	perfetto_number(&m, SWITCH_TO, in ? (uint32_t)e->on->tid : 0);
	perfetto_number(&m, SWITCH_TO_PRIO, PRIO);
	return ftrace(w, e, in ? 0 : e->on->tid, FTRACE_SWITCH, &m);
}

static int
put_waking(struct trace_writer *w, const struct story_event *e)
{
	struct perfetto_message m;

	m.size = 0;
	if (w->trace->source == TRACE_BY_HOOKS || e->made == STORY_WAKEUP)
		return 0;
	perfetto_text(w, &m, WAKING_NAME, name_of(e->other));
	perfetto_number(&m, WAKING_PID, (uint32_t)e->other->tid);
	perfetto_number(&m, WAKING_PRIO, PRIO);
	perfetto_number(&m, WAKING_SUCCESS, 1);
	perfetto_number(&m, WAKING_CPU, e->cpu);
	return ftrace(w, e, e->on->tid, FTRACE_WAKING, &m);
}

/* ---- rows and what is on them ---- */

static uint64_t
row_of(const struct story_thread *t)
{
	return ROW_THREADS + t->serial;
}

static int
put_row_of_thread(struct trace_writer *w, const struct story_thread *t)
{
	struct perfetto        *p = w->state;
	struct perfetto_message thread, m;

	thread.size = m.size = 0;
	perfetto_number(&thread, THREAD_PID, (uint32_t)p->pid);
	perfetto_number(&thread, THREAD_TID, (uint32_t)t->tid);
	perfetto_text(w, &thread, THREAD_NAME, name_of(t));
	perfetto_number(&m, TRACK_ID, row_of(t));
	perfetto_number(&m, TRACK_PARENT, ROW_PROCESS);
	perfetto_inner(&m, TRACK_THREAD, &thread);
	perfetto_packet(w, 0, PACKET_TRACK, &m);
	return 0;
}

static int
put_event(struct trace_writer *w, const struct story_event *e, unsigned type, uint64_t row, const char *category,
	const char *name)
{
	struct perfetto_message m, task;
	uint64_t                stack;
	int                     r = type == SLICE_END ? 0 : trace_stack_number(&w->stacks, e, &stack);

	m.size = task.size = 0;
	if (r < 0)
		return r;
	perfetto_number(&m, EVENT_TYPE, type);
	perfetto_number(&m, EVENT_TRACK, row);
	if (type == COUNTER)
		perfetto_number(&m, EVENT_COUNTER, e->value);
	if (category)
		perfetto_text(w, &m, EVENT_CATEGORY, category);
	if (name)
		perfetto_text(w, &m, EVENT_NAME, name);
	if (type != SLICE_END && stack)
		perfetto_number(&m, EVENT_STACK, stack);
	if (type != SLICE_END && type != COUNTER && e->value) {
		perfetto_number(&task, ANNOTATION_UINT, e->value);
		perfetto_bytes(&task, ANNOTATION_NAME, "task", 4);
		perfetto_inner(&m, EVENT_ANNOTATION, &task);
	}
	perfetto_packet(w, clock_of(w, e), PACKET_EVENT, &m);
	return 0;
}

/* Where a task begins it gets a row; one that began before the trace has none. */
static int
put_task(struct trace_writer *w, const struct story_event *e)
{
	struct perfetto        *p = w->state;
	struct perfetto_message m;
	uint64_t                row = ROW_TASKS | e->value;
	int                     r;

	m.size = 0;
	if (e->type == STORY_TASK_END)
		return table_get(&p->tasks, e->value) ? put_event(w, e, SLICE_END, row, NULL, NULL) : 0;
	if (!table_get(&p->tasks, e->value)) {
		perfetto_number(&m, TRACK_ID, row);
		perfetto_number(&m, TRACK_PARENT, ROW_PROCESS);
		perfetto_text(w, &m, TRACK_NAME, e->name[0] ? e->name : "task");
		perfetto_packet(w, 0, PACKET_TRACK, &m);
		r = table_put(&p->tasks, e->value, 1);
		if (r < 0)
			return r;
	}
	return put_event(w, e, SLICE_BEGIN, row, "task", e->name[0] ? e->name : "task");
}

static int
put_sample(struct trace_writer *w, const struct story_event *e)
{
	struct perfetto        *p = w->state;
	struct perfetto_message m;
	uint64_t                stack;
	int                     r = trace_stack_number(&w->stacks, e, &stack);

	m.size = 0;
	if (r < 0)
		return r;
	if (e->cpu != STORY_NO_CPU && w->trace->source == TRACE_BY_SWITCHES)
		perfetto_number(&m, SAMPLE_CPU, e->cpu);
	perfetto_number(&m, SAMPLE_PID, (uint32_t)p->pid);
	perfetto_number(&m, SAMPLE_TID, (uint32_t)e->on->tid);
	perfetto_number(&m, SAMPLE_MODE, MODE_USER);
	if (stack)
		perfetto_number(&m, SAMPLE_STACK, stack);
	perfetto_packet(w, clock_of(w, e), PACKET_SAMPLE, &m);
	return 0;
}

/* A wait whose reason is known is a slice of the thread's row, until it runs again. */
static int
put_block(struct trace_writer *w, const struct story_event *e)
{
	static const char *const words[] = {
		[TRACE_OTHER] = "waits",
		[TRACE_SYNC] = "waits for a lock",
		[TRACE_COND] = "waits for a condition",
		[TRACE_NETWORK] = "waits for I/O",
		[TRACE_SLEEP] = "sleeps",
	};
	int r = put_switch(w, e, false, STATE_SLEEPING);

	e->on->label_number = e->made == STORY_TAKEN; /* a slice is open */
	if (r < 0 || !e->on->label_number)
		return r;
	return put_event(w, e, SLICE_BEGIN, row_of(e->on), "wait", words[e->reason <= TRACE_SLEEP ? e->reason : 0]);
}

/* The row has the thread's name already. */
static int
put_label(struct trace_writer *w, const struct story_event *e)
{
	struct story_thread *t = e->on;
	const char          *before = t->label_told ? t->label_told : "";

	t->label_told = t->label;
	if (!strcmp(before, t->label))
		return 0;
	return put_event(w, e, INSTANT, row_of(t), "label", *t->label ? t->label : "no labels");
}

static int
put_start(struct trace_writer *w, const struct story_event *e)
{
	struct story_thread *t = e->on;
	int                  r = put_switch(w, e, true, 0);

	if (!r && t->label_number)
		r = put_event(w, e, SLICE_END, row_of(t), NULL, NULL);
	t->label_number = 0;
	return r < 0 ? r : put_label(w, e);
}

static int
event(struct trace_writer *w, const struct story_event *e)
{
	switch (e->type) {
	case STORY_CPU_START:
	case STORY_CPU_STOP:
		break;
	case STORY_CREATE:
		return put_row_of_thread(w, e->other);
	case STORY_START:
		return put_start(w, e);
	case STORY_PREEMPT:
		return put_switch(w, e, false, STATE_RUNNABLE);
	case STORY_BLOCK:
		return put_block(w, e);
	case STORY_UNBLOCK:
		return put_waking(w, e);
	case STORY_END:
		return put_switch(w, e, false, STATE_DEAD);
	case STORY_LABEL:
		return put_label(w, e);
	case STORY_SAMPLE:
		return put_sample(w, e);
	case STORY_HEAP:
		return put_event(w, e, COUNTER, ROW_HEAP, NULL, NULL);
	case STORY_TASK_BEGIN:
	case STORY_TASK_END:
		return put_task(w, e);
	case STORY_REGION_BEGIN:
		return put_event(w, e, SLICE_BEGIN, row_of(e->on), "region", e->name[0] ? e->name : "region");
	case STORY_REGION_END: /* unless it began before the trace */
		return e->on->regions ? put_event(w, e, SLICE_END, row_of(e->on), NULL, NULL) : 0;
	case STORY_LOG:
		return put_event(w, e, INSTANT, row_of(e->on), e->name, e->text);
	}
	return 0;
}

/* ---- the beginning ---- */

static void
add_clock(struct perfetto_message *m, uint64_t id, uint64_t time)
{
	struct perfetto_message clock;

	clock.size = 0;
	perfetto_number(&clock, CLOCK_ID, id);
	perfetto_number(&clock, CLOCK_TIME, time);
	perfetto_inner(m, CLOCKS_CLOCK, &clock);
}

/* All times are the monotonic clock's, under the name of the one that readers expect. */
static void
put_clocks(struct trace_writer *w)
{
	const struct trace     *t = w->trace;
	struct perfetto_message m;

	m.size = 0;
	add_clock(&m, CLOCK_OF_BOOT, t->start_ns);
	add_clock(&m, CLOCK_OF_MONOTONIC, t->start_ns);
	if (t->time_ns > 0)
		add_clock(&m, CLOCK_OF_REALTIME, (uint64_t)t->time_ns);
	perfetto_packet(w, 0, PACKET_CLOCKS, &m);
}

static void
put_process(struct trace_writer *w)
{
	struct perfetto        *p = w->state;
	struct perfetto_message process, m, mapping, interned;
	struct symbols         *s = w->stacks.symbols;
	const char             *path = symbols_mapping_count(s) ? symbols_mapping(s, 0)->path : "program";
	const char             *slash = strrchr(path, '/');

	process.size = m.size = mapping.size = interned.size = 0;
	perfetto_number(&process, PROCESS_PID, (uint32_t)p->pid);
	perfetto_text(w, &process, PROCESS_NAME, slash ? slash + 1 : path);
	perfetto_number(&m, TRACK_ID, ROW_PROCESS);
	perfetto_inner(&m, TRACK_PROCESS, &process);
	perfetto_packet(w, 0, PACKET_TRACK, &m);
	perfetto_intern_text(w, INTERNED_PATHS, 1, path, strnlen(path, TRACE_TEXT_MAX));
	perfetto_number(&mapping, MAPPING_ID, THE_MAPPING);
	perfetto_number(&mapping, MAPPING_PATH, 1);
	perfetto_inner(&interned, INTERNED_MAPPINGS, &mapping);
	perfetto_packet(w, 0, PACKET_INTERNED, &interned);
}

static void
put_row_of_heap(struct trace_writer *w)
{
	struct perfetto_message counter, m;

	counter.size = m.size = 0;
	perfetto_number(&counter, COUNTER_UNIT, UNIT_BYTES);
	perfetto_number(&m, TRACK_ID, ROW_HEAP);
	perfetto_number(&m, TRACK_PARENT, ROW_PROCESS);
	perfetto_bytes(&m, TRACK_NAME, "heap in use", 11);
	perfetto_inner(&m, TRACK_COUNTER, &counter);
	perfetto_packet(w, 0, PACKET_TRACK, &m);
}

static int
begin(struct trace_writer *w)
{
	struct perfetto *p = arena_alloc(w->arena, sizeof(*p));

	trace_streams_init(&w->streams, w->arena, &w->out, bundle_head, w->cpu_count);
	if (!p)
		return -ENOMEM;
	p->cpus = arena_array(w->arena, w->cpu_count + 1, sizeof(struct trace_stream *));
	table_init(&p->frames, w->arena->budget);
	table_init(&p->tasks, w->arena->budget);
	p->pid = getpid();
	for (size_t i = 0; i < w->trace->thread_count; i++)
		if (w->trace->threads[i].main)
			p->pid = w->trace->threads[i].tid; /* they are the same */
	p->offset = w->trace->start_ns > w->base ? w->trace->start_ns - w->base : 0;
	w->state = p;
	if (!p->cpus)
		return -ENOMEM;
	put_clocks(w);
	put_process(w);
	put_row_of_heap(w);
	return 0;
}

static void
end(struct trace_writer *w)
{
	trace_streams_flush(&w->streams);
}

static void
drop(struct trace_writer *w)
{
	struct perfetto *p = w->state;

	table_release(&p->frames);
	table_release(&p->tasks);
}

const struct trace_format perfetto_format = { { write_text, write_stack }, begin, event, end, drop };
