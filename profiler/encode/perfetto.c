/*
 * perfetto.c - an execution trace as ui.perfetto.dev and trace_processor read it.
 *
 * A file is a sequence of TracePackets.  The CPUs' rows are what the kernel's tracer
 * would have said (sched_switch, sched_waking, in bundles by CPU), so that the tables of
 * scheduling, thread states and wakers work.  Waits with their stacks, regions, logs and
 * tasks are track events; CPU samples are samples of perf; names are interned.
 *
 * What a stranger would get wrong:
 * - A call stack's frames are listed root first, other than everywhere else.
 * - What is interned must be written before what uses it, in one sequence; the bundles
 *   of the CPUs may come at any time, readers sort.
 * - Frames without a mapping are not shown: all share one, the program's.
 * - Without switches there are no CPUs: then the threads' rows have waits alone.
 *
 * Why not Chrome's JSON: it is ten times larger, has no scheduling, and its times are
 * fractions of microseconds.  Why not protobuf-c: each message here has a few numbers
 * and texts, and the schema is some thousand fields of somebody else's.
 *
 * Tests: tests/gotrace.t
 */
#include <config.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "trace_format.h"

/* Field numbers, by message. */
enum { TRACE_PACKET = 1 };
enum {
	PACKET_FTRACE = 1, PACKET_CLOCKS = 6, PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_EVENT = 11,
	PACKET_INTERNED = 12, PACKET_FLAGS = 13, PACKET_TRACK = 60, PACKET_SAMPLE = 66,
};
enum { INTERNED_FUNCTIONS = 5, INTERNED_FRAMES, INTERNED_STACKS, INTERNED_PATHS = 17, INTERNED_FILES, INTERNED_MAPPINGS };
enum { FRAME_ID = 1, FRAME_FUNCTION, FRAME_MAPPING, FRAME_PC, FRAME_FILE, FRAME_LINE };
enum { MAPPING_ID = 1, MAPPING_PATH = 7 };
enum { TRACK_ID = 1, TRACK_NAME, TRACK_PROCESS, TRACK_THREAD, TRACK_PARENT, TRACK_COUNTER = 8 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID, THREAD_NAME = 5 };
enum { COUNTER_UNIT = 3 };
enum {
	EVENT_ANNOTATION = 4, EVENT_TYPE = 9, EVENT_TRACK = 11, EVENT_CATEGORY = 22, EVENT_NAME, EVENT_COUNTER = 30,
	EVENT_STACK = 56,
};
enum { ANNOTATION_UINT = 3, ANNOTATION_NAME = 10 };
enum { SAMPLE_CPU = 1, SAMPLE_PID, SAMPLE_TID, SAMPLE_STACK, SAMPLE_MODE };
enum { BUNDLE_CPU = 1, BUNDLE_EVENT };
enum { FTRACE_TIME = 1, FTRACE_PID, FTRACE_SWITCH = 4, FTRACE_WAKING = 20 };
enum { SWITCH_FROM_NAME = 1, SWITCH_FROM, SWITCH_FROM_PRIO, SWITCH_STATE, SWITCH_TO_NAME, SWITCH_TO, SWITCH_TO_PRIO };
enum { WAKING_NAME = 1, WAKING_PID, WAKING_PRIO, WAKING_SUCCESS, WAKING_CPU };
enum { CLOCKS_CLOCK = 1, CLOCK_ID = 1, CLOCK_TIME };

/* Values. */
enum { CLOCK_OF_REALTIME = 1, CLOCK_OF_MONOTONIC = 3, CLOCK_OF_BOOT = 6 };
enum { SLICE_BEGIN = 1, SLICE_END, INSTANT, COUNTER };
enum { STATE_RUNNABLE = 0, STATE_SLEEPING = 1, STATE_DEAD = 16 }; /* of the kernel */
enum { CLEARED = 1, NEEDED = 2 };
enum { UNIT_BYTES = 3, MODE_USER = 2, PRIO = 120, SEQUENCE = 1, THE_MAPPING = 1 };

/* Tracks; the rest are threads, by serial, and tasks. */
#define ROW_PROCESS 1
#define ROW_HEAP    2
#define ROW_THREADS ((uint64_t)1 << 40)
#define ROW_TASKS   ((uint64_t)1 << 62)

#define MESSAGE_MAX 4096 /* bytes: two texts, or the numbers of 100 frames */

_Static_assert(MESSAGE_MAX > 2 * TRACE_TEXT_MAX + 512 && MESSAGE_MAX > TRACE_FRAMES_MAX * 11 + 512, "all fit");

struct perfetto {
	struct trace_stream **cpus;
	struct idmap          frames; /* written */
	struct idmap          tasks;  /* that have a row */
	int32_t               pid;
	uint64_t              offset; /* from a story's time to the clock's */
};

/* Never initialised as a whole: that would cost more than all the rest. */
struct message {
	size_t  size;
	uint8_t data[MESSAGE_MAX];
};

static void
number(struct message *m, unsigned field, uint64_t v)
{
	m->size += trace_varint(m->data + m->size, field << 3);
	m->size += trace_varint(m->data + m->size, v);
}

static void
bytes(struct message *m, unsigned field, const void *data, size_t size)
{
	m->size += trace_varint(m->data + m->size, field << 3 | 2);
	m->size += trace_varint(m->data + m->size, size);
	memcpy(m->data + m->size, data, size);
	m->size += size;
}

static void
inner(struct message *m, unsigned field, const struct message *of)
{
	bytes(m, field, of->data, of->size);
}

/* Cut and clean; nothing if there is no memory to make it so. */
static void
text(struct trace_writer *w, struct message *m, unsigned field, const char *s)
{
	size_t size;

	if (trace_text_clean(&w->stacks, &s, &size) == 0)
		bytes(m, field, s, size);
}

/* A packet of one message. */
static void
packet(struct trace_writer *w, uint64_t time, unsigned field, const struct message *of)
{
	uint8_t         head[1 + TRACE_VARINT_MAX];
	struct message  m;
	struct perfetto *p = w->state;
	size_t          n = 1;

	m.size = 0;
	if (time)
		number(&m, PACKET_TIMESTAMP, time + p->offset);
	number(&m, PACKET_SEQUENCE, SEQUENCE);
	number(&m, PACKET_FLAGS, field == PACKET_CLOCKS ? CLEARED : NEEDED);
	/* Not copied: what is in m is the head of the packet. */
	m.size += trace_varint(m.data + m.size, field << 3 | 2);
	m.size += trace_varint(m.data + m.size, of->size);
	head[0] = TRACE_PACKET << 3 | 2;
	n += trace_varint(head + n, m.size + of->size);
	lines_bytes(&w->out, head, n);
	lines_bytes(&w->out, m.data, m.size);
	lines_bytes(&w->out, of->data, of->size);
}

/* ---- what is interned ---- */

static void
intern_text(struct trace_writer *w, unsigned field, uint64_t id, const char *s, size_t size)
{
	struct message entry, m;

	entry.size = m.size = 0;
	number(&entry, 1, id);
	bytes(&entry, 2, s, size);
	inner(&m, field, &entry);
	packet(w, 0, PACKET_INTERNED, &m);
}

/* Functions' and files' names have numbers of one kind here, and of two there. */
static int
write_text(void *arg, uint64_t id, const char *s, size_t size)
{
	intern_text(arg, INTERNED_FUNCTIONS, id, s, size);
	intern_text(arg, INTERNED_FILES, id, s, size);
	return 0;
}

static int
write_frame(struct trace_writer *w, const struct trace_frame *f)
{
	struct perfetto *p = w->state;
	struct message   frame, m;

	frame.size = m.size = 0;
	if (idmap_get(&p->frames, f->pc))
		return 0;
	number(&frame, FRAME_ID, f->pc);
	number(&frame, FRAME_FUNCTION, f->function);
	number(&frame, FRAME_MAPPING, THE_MAPPING);
	number(&frame, FRAME_PC, f->pc);
	if (f->file)
		number(&frame, FRAME_FILE, f->file);
	if (f->line)
		number(&frame, FRAME_LINE, f->line);
	inner(&m, INTERNED_FRAMES, &frame);
	packet(w, 0, PACKET_INTERNED, &m);
	return idmap_put(&p->frames, f->pc, 1);
}

static int
write_stack(void *arg, uint64_t id, const struct trace_frame *frames, unsigned count)
{
	struct trace_writer *w = arg;
	struct message       stack, m;
	int                  r = 0;

	stack.size = m.size = 0;
	number(&stack, 1, id);
	for (unsigned i = count; i-- > 0 && !r;) {
		r = write_frame(w, &frames[i]);
		number(&stack, 2, frames[i].pc);
	}
	inner(&m, INTERNED_STACKS, &stack);
	packet(w, 0, PACKET_INTERNED, &m);
	return r;
}

/* ---- the CPUs ---- */

static void
bundle_head(struct lines *out, const struct trace_stream *s, size_t size)
{
	struct message cpu, m;
	uint8_t        head[1 + TRACE_VARINT_MAX];
	size_t         n = 1;

	cpu.size = m.size = 0;
	number(&cpu, BUNDLE_CPU, s->id);
	number(&m, PACKET_SEQUENCE, SEQUENCE);
	m.size += trace_varint(m.data + m.size, PACKET_FTRACE << 3 | 2);
	m.size += trace_varint(m.data + m.size, cpu.size + size);
	head[0] = TRACE_PACKET << 3 | 2;
	n += trace_varint(head + n, m.size + cpu.size + size);
	lines_bytes(out, head, n);
	lines_bytes(out, m.data, m.size);
	lines_bytes(out, cpu.data, cpu.size);
}

static int
ftrace(struct trace_writer *w, const struct story_event *e, int32_t tid, unsigned field, const struct message *of)
{
	struct perfetto *p = w->state;
	struct message   event, m;

	event.size = m.size = 0;
	if (!p->cpus[e->cpu])
		p->cpus[e->cpu] = trace_stream_open(&w->streams, e->cpu);
	if (!p->cpus[e->cpu])
		return -ENOMEM;
	number(&event, FTRACE_TIME, e->time + p->offset);
	number(&event, FTRACE_PID, (uint32_t)tid);
	inner(&event, field, of);
	inner(&m, BUNDLE_EVENT, &event);
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
	static const char idle[] = "swapper";
	struct message    m;

	m.size = 0;
	if (w->trace->source == TRACE_BY_HOOKS)
		return 0;
	text(w, &m, SWITCH_FROM_NAME, in ? idle : name_of(e->on));
	number(&m, SWITCH_FROM, in ? 0 : (uint32_t)e->on->tid);
	number(&m, SWITCH_FROM_PRIO, PRIO);
	number(&m, SWITCH_STATE, in ? STATE_RUNNABLE : state);
	text(w, &m, SWITCH_TO_NAME, in ? name_of(e->on) : idle);
	number(&m, SWITCH_TO, in ? (uint32_t)e->on->tid : 0);
	number(&m, SWITCH_TO_PRIO, PRIO);
	return ftrace(w, e, in ? 0 : e->on->tid, FTRACE_SWITCH, &m);
}

static int
put_waking(struct trace_writer *w, const struct story_event *e)
{
	struct message m;

	m.size = 0;
	if (w->trace->source == TRACE_BY_HOOKS || e->made == STORY_WAKEUP)
		return 0;
	text(w, &m, WAKING_NAME, name_of(e->other));
	number(&m, WAKING_PID, (uint32_t)e->other->tid);
	number(&m, WAKING_PRIO, PRIO);
	number(&m, WAKING_SUCCESS, 1);
	number(&m, WAKING_CPU, e->cpu);
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
	struct perfetto *p = w->state;
	struct message   thread, m;

	thread.size = m.size = 0;
	number(&thread, THREAD_PID, (uint32_t)p->pid);
	number(&thread, THREAD_TID, (uint32_t)t->tid);
	text(w, &thread, THREAD_NAME, name_of(t));
	number(&m, TRACK_ID, row_of(t));
	number(&m, TRACK_PARENT, ROW_PROCESS);
	inner(&m, TRACK_THREAD, &thread);
	packet(w, 0, PACKET_TRACK, &m);
	return 0;
}

static int
put_event(struct trace_writer *w, const struct story_event *e, unsigned type, uint64_t row, const char *category,
	const char *name)
{
	struct message m, task;
	uint64_t       stack;
	int            r = type == SLICE_END ? 0 : trace_stack_number(&w->stacks, e, &stack);

	m.size = task.size = 0;
	if (r < 0)
		return r;
	number(&m, EVENT_TYPE, type);
	number(&m, EVENT_TRACK, row);
	if (type == COUNTER)
		number(&m, EVENT_COUNTER, e->value);
	if (category)
		text(w, &m, EVENT_CATEGORY, category);
	if (name)
		text(w, &m, EVENT_NAME, name);
	if (type != SLICE_END && stack)
		number(&m, EVENT_STACK, stack);
	if (type != SLICE_END && type != COUNTER && e->value) {
		number(&task, ANNOTATION_UINT, e->value);
		bytes(&task, ANNOTATION_NAME, "task", 4);
		inner(&m, EVENT_ANNOTATION, &task);
	}
	packet(w, e->time, PACKET_EVENT, &m);
	return 0;
}

/* Where a task begins it gets a row; one that began before the trace has none. */
static int
put_task(struct trace_writer *w, const struct story_event *e)
{
	struct perfetto *p = w->state;
	struct message   m;
	uint64_t         row = ROW_TASKS | e->value;
	int              r;

	m.size = 0;
	if (e->type == STORY_TASK_END)
		return idmap_get(&p->tasks, e->value) ? put_event(w, e, SLICE_END, row, NULL, NULL) : 0;
	if (!idmap_get(&p->tasks, e->value)) {
		number(&m, TRACK_ID, row);
		number(&m, TRACK_PARENT, ROW_PROCESS);
		text(w, &m, TRACK_NAME, e->name[0] ? e->name : "task");
		packet(w, 0, PACKET_TRACK, &m);
		r = idmap_put(&p->tasks, e->value, 1);
		if (r < 0)
			return r;
	}
	return put_event(w, e, SLICE_BEGIN, row, "task", e->name[0] ? e->name : "task");
}

static int
put_sample(struct trace_writer *w, const struct story_event *e)
{
	struct perfetto *p = w->state;
	struct message   m;
	uint64_t         stack;
	int              r = trace_stack_number(&w->stacks, e, &stack);

	m.size = 0;
	if (r < 0)
		return r;
	if (e->cpu != STORY_NO_CPU && w->trace->source == TRACE_BY_SWITCHES)
		number(&m, SAMPLE_CPU, e->cpu);
	number(&m, SAMPLE_PID, (uint32_t)p->pid);
	number(&m, SAMPLE_TID, (uint32_t)e->on->tid);
	number(&m, SAMPLE_MODE, MODE_USER);
	if (stack)
		number(&m, SAMPLE_STACK, stack);
	packet(w, e->time, PACKET_SAMPLE, &m);
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

static int
put_start(struct trace_writer *w, const struct story_event *e)
{
	struct story_thread *t = e->on;
	int                  r = put_switch(w, e, true, 0);

	if (!r && t->label_number)
		r = put_event(w, e, SLICE_END, row_of(t), NULL, NULL);
	t->label_number = 0;
	return r;
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
		return e->on->label[0] ? put_event(w, e, INSTANT, row_of(e->on), "label", e->on->label) : 0;
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
add_clock(struct message *m, uint64_t id, uint64_t time)
{
	struct message clock;

	clock.size = 0;
	number(&clock, CLOCK_ID, id);
	number(&clock, CLOCK_TIME, time);
	inner(m, CLOCKS_CLOCK, &clock);
}

/* All times are the monotonic clock's, under the name of the one that readers expect. */
static void
put_clocks(struct trace_writer *w)
{
	const struct trace *t = w->trace;
	struct message      m;

	m.size = 0;
	add_clock(&m, CLOCK_OF_BOOT, t->start_ns);
	add_clock(&m, CLOCK_OF_MONOTONIC, t->start_ns);
	if (t->time_ns > 0)
		add_clock(&m, CLOCK_OF_REALTIME, (uint64_t)t->time_ns);
	packet(w, 0, PACKET_CLOCKS, &m);
}

static void
put_process(struct trace_writer *w)
{
	struct perfetto *p = w->state;
	struct message   process, m, mapping, interned;
	struct symbols  *s = w->stacks.symbols;
	const char      *path = symbols_mapping_count(s) ? symbols_mapping(s, 0)->path : "program";
	const char      *slash = strrchr(path, '/');

	process.size = m.size = mapping.size = interned.size = 0;
	number(&process, PROCESS_PID, (uint32_t)p->pid);
	text(w, &process, PROCESS_NAME, slash ? slash + 1 : path);
	number(&m, TRACK_ID, ROW_PROCESS);
	inner(&m, TRACK_PROCESS, &process);
	packet(w, 0, PACKET_TRACK, &m);
	intern_text(w, INTERNED_PATHS, 1, path, strnlen(path, TRACE_TEXT_MAX));
	number(&mapping, MAPPING_ID, THE_MAPPING);
	number(&mapping, MAPPING_PATH, 1);
	inner(&interned, INTERNED_MAPPINGS, &mapping);
	packet(w, 0, PACKET_INTERNED, &interned);
}

static void
put_row_of_heap(struct trace_writer *w)
{
	struct message counter, m;

	counter.size = m.size = 0;
	number(&counter, COUNTER_UNIT, UNIT_BYTES);
	number(&m, TRACK_ID, ROW_HEAP);
	number(&m, TRACK_PARENT, ROW_PROCESS);
	bytes(&m, TRACK_NAME, "heap in use", 11);
	inner(&m, TRACK_COUNTER, &counter);
	packet(w, 0, PACKET_TRACK, &m);
}

static int
begin(struct trace_writer *w)
{
	struct perfetto *p = arena_alloc(w->arena, sizeof(*p));

	trace_streams_init(&w->streams, w->arena, &w->out, bundle_head, w->cpu_count);
	if (!p)
		return -ENOMEM;
	p->cpus = arena_array(w->arena, w->cpu_count + 1, sizeof(struct trace_stream *));
	idmap_init(&p->frames, w->arena->budget);
	idmap_init(&p->tasks, w->arena->budget);
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

	idmap_release(&p->frames);
	idmap_release(&p->tasks);
}

const struct trace_format perfetto_format = { { write_text, write_stack }, begin, event, end, drop };
