/*
 * gotrace_v1.c - the format of Go 1.19's execution traces, which every go tool trace
 * from 1.19 on opens.
 *
 * A file is a header and records: a byte with type and count, then varints, those of
 * four or more behind their length.  An EvBatch says whose the records after it are:
 * each processor's, in order.  Texts, stacks, samples and the frequency are nobody's,
 * the processor -1's.
 *
 * What a stranger would get wrong:
 * - The counts of the records are exact; one varint too many makes the file unreadable.
 * - Gomaxprocs comes before the first GoCreate, or newer tools take what is before it
 *   for the state at the start; older ones want that a thread's creation has a stack.
 * - A thread's events that may come from any processor (start, unblock) have its
 *   sequence number, which the others do not touch.
 * - CPU samples have their time absolute, and no thread of the kernel.
 *
 * Tests: tests/test_gotrace.c, tests/gotrace.t
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "trace_format.h"

enum record {
	EV_BATCH = 1,
	EV_FREQUENCY = 2,
	EV_STACK = 3,
	EV_GOMAXPROCS = 4,
	EV_PROC_START = 5,
	EV_PROC_STOP = 6,
	EV_GO_CREATE = 13,
	EV_GO_START = 14,
	EV_GO_END = 15,
	EV_GO_PREEMPT = 18,
	EV_GO_SLEEP = 19,
	EV_GO_BLOCK = 20,
	EV_GO_UNBLOCK = 21,
	EV_GO_BLOCK_SYNC = 25,
	EV_GO_BLOCK_COND = 26,
	EV_GO_BLOCK_NET = 27,
	EV_HEAP_ALLOC = 33,
	EV_STRING = 37,
	EV_GO_START_LABEL = 41,
	EV_TASK_CREATE = 45,
	EV_TASK_END = 46,
	EV_REGION = 47,
	EV_LOG = 48,
	EV_CPU_SAMPLE = 49,
};

#define NOBODY    UINT64_MAX
#define ARGS_MAX  8    /* varints of a record, but for a stack's */
#define STACK_MAX 2048 /* bytes of a stack's record: newer tools take no more */

struct v1 {
	struct trace_stream **cpus;
	bool                  procs_told;
};

/* A record's bytes; returns how many. */
static size_t
pack(uint8_t *p, enum record type, const uint64_t *args, size_t count)
{
	uint8_t body[ARGS_MAX * TRACE_VARINT_MAX];
	size_t  size = 0, n = 0;

	for (size_t i = 0; i < count; i++)
		size += trace_varint(body + size, args[i]);
	p[n++] = (uint8_t)(type | (count > 3 ? 3 : count - 1) << 6);
	if (count > 3)
		n += trace_varint(p + n, size);
	memcpy(p + n, body, size);
	return n + size;
}

static void
batch_head(struct lines *out, const struct trace_stream *s, size_t size)
{
	uint8_t  head[1 + 2 * TRACE_VARINT_MAX];
	uint64_t args[] = { s->id, s->start };

	(void)size;
	lines_bytes(out, head, pack(head, EV_BATCH, args, 2));
}

/* args[0] is for the time. */
static void
put(struct trace_writer *w, struct trace_stream *s, uint64_t time, enum record type, uint64_t *args, size_t count)
{
	uint8_t buf[2 + (ARGS_MAX + 1) * TRACE_VARINT_MAX];

	args[0] = trace_stream_delta(&w->streams, s, time, sizeof(buf));
	trace_stream_add(&w->streams, s, buf, pack(buf, type, args, count));
}

/* The only record that something follows: the message. */
static int
put_log(struct trace_writer *w, struct trace_stream *s, const struct story_event *e, uint64_t key, uint64_t stack)
{
	uint8_t     buf[2 + (ARGS_MAX + 1) * TRACE_VARINT_MAX + TRACE_TEXT_MAX];
	uint64_t    args[] = { 0, e->value, key, stack };
	const char *text = e->text;
	size_t      size, n;
	int         r = trace_text_clean(&w->stacks, &text, &size);

	if (r < 0)
		return r;
	args[0] = trace_stream_delta(&w->streams, s, e->time, sizeof(buf) - TRACE_TEXT_MAX + size);
	n = pack(buf, EV_LOG, args, 4);
	n += trace_varint(buf + n, size);
	memcpy(buf + n, text, size);
	trace_stream_add(&w->streams, s, buf, n + size);
	return 0;
}

/* ---- tables ---- */

static int
write_text(void *arg, uint64_t number, const char *text, size_t size)
{
	struct trace_writer *w = arg;
	uint8_t              buf[1 + 2 * TRACE_VARINT_MAX + TRACE_TEXT_MAX];
	size_t               n = 0;

	buf[n++] = EV_STRING;
	n += trace_varint(buf + n, number);
	n += trace_varint(buf + n, size);
	memcpy(buf + n, text, size);
	trace_stream_delta(&w->streams, w->tables, 0, n + size);
	trace_stream_add(&w->streams, w->tables, buf, n + size);
	return 0;
}

static size_t
pack_frame(uint8_t *p, const struct trace_frame *f)
{
	size_t n = trace_varint(p, f->pc);

	n += trace_varint(p + n, f->function);
	n += trace_varint(p + n, f->file);
	return n + trace_varint(p + n, f->line);
}

/* The root stays, whatever else has no room. */
static int
write_stack(void *arg, uint64_t number, const struct trace_frame *frames, unsigned count)
{
	struct trace_writer *w = arg;
	uint8_t              body[STACK_MAX], buf[STACK_MAX + 2 * TRACE_VARINT_MAX], last[4 * TRACE_VARINT_MAX];
	size_t               root = pack_frame(last, &frames[count - 1]), size = 0, n = 0, head;
	unsigned             done = 0;

	for (; done + 1 < count && size + sizeof(last) + root + 2 * TRACE_VARINT_MAX < STACK_MAX; done++)
		size += pack_frame(body + size, &frames[done]);
	memcpy(body + size, last, root);
	size += root;
	head = trace_varint(buf, number) + trace_varint(buf, done + 1u);
	buf[n++] = EV_STACK | 3 << 6;
	n += trace_varint(buf + n, head + size);
	n += trace_varint(buf + n, number);
	n += trace_varint(buf + n, done + 1u);
	memcpy(buf + n, body, size);
	trace_stream_delta(&w->streams, w->tables, 0, n + size);
	trace_stream_add(&w->streams, w->tables, buf, n + size);
	return 0;
}

/* ---- events ---- */

static struct trace_stream *
stream_of(struct trace_writer *w, uint32_t cpu)
{
	struct v1 *v = w->state;

	if (!v->cpus[cpu])
		v->cpus[cpu] = trace_stream_open(&w->streams, cpu);
	return v->cpus[cpu];
}

static void
put_proc_start(struct trace_writer *w, struct trace_stream *s, const struct story_event *e)
{
	struct v1 *v = w->state;
	uint64_t   start[] = { 0, (uint32_t)e->on->tid }, procs[] = { 0, w->cpu_count, 0 };

	put(w, s, e->time, EV_PROC_START, start, 2);
	if (!v->procs_told)
		put(w, s, e->time, EV_GOMAXPROCS, procs, 3);
	v->procs_told = true;
}

static int
put_create(struct trace_writer *w, struct trace_stream *s, const struct story_event *e, uint64_t stack)
{
	uint64_t args[] = { 0, e->other->serial, 0, stack };
	int      r = trace_begin_number(&w->stacks, e->other, &args[2]);

	if (r < 0)
		return r;
	e->other->sequence = 1;
	put(w, s, e->time, EV_GO_CREATE, args, 4);
	return 0;
}

/* Its name, which older tools show instead of the function's, and newer ones beside it. */
static int
put_start(struct trace_writer *w, struct trace_stream *s, const struct story_event *e)
{
	struct story_thread *t = e->on;
	uint64_t             args[] = { 0, t->serial, t->sequence++, 0 };
	int                  r = 0;

	if (t->label_told != t->label) {
		r = trace_text_number(&w->stacks, t->label, true, &t->label_number);
		t->label_told = t->label;
	}
	args[3] = t->label_number;
	put(w, s, e->time, t->label_number ? EV_GO_START_LABEL : EV_GO_START, args, t->label_number ? 4 : 3);
	return r;
}

static void
put_block(struct trace_writer *w, struct trace_stream *s, const struct story_event *e, uint64_t stack)
{
	static const enum record types[] = {
		[TRACE_OTHER] = EV_GO_BLOCK,
		[TRACE_SYNC] = EV_GO_BLOCK_SYNC,
		[TRACE_COND] = EV_GO_BLOCK_COND,
		[TRACE_NETWORK] = EV_GO_BLOCK_NET,
		[TRACE_SLEEP] = EV_GO_SLEEP,
	};
	uint64_t args[] = { 0, stack };

	put(w, s, e->time, e->reason <= TRACE_SLEEP ? types[e->reason] : EV_GO_BLOCK, args, 2);
}

static void
put_sample(struct trace_writer *w, const struct story_event *e, uint64_t stack)
{
	uint64_t args[] = { 0, e->time, e->cpu == STORY_NO_CPU ? NOBODY : e->cpu, e->on->serial, stack };

	put(w, w->samples, 0, EV_CPU_SAMPLE, args, 5);
}

static int
put_task(struct trace_writer *w, struct trace_stream *s, const struct story_event *e, uint64_t stack)
{
	bool     begin = e->type == STORY_TASK_BEGIN;
	uint64_t args[] = { 0, e->value, begin ? e->parent : stack, 0, stack };
	int      r = begin ? trace_text_number(&w->stacks, e->name, true, &args[3]) : 0;

	put(w, s, e->time, begin ? EV_TASK_CREATE : EV_TASK_END, args, begin ? 5 : 3);
	return r;
}

static int
put_region(struct trace_writer *w, struct trace_stream *s, const struct story_event *e, uint64_t stack)
{
	uint64_t args[] = { 0, e->value, e->type == STORY_REGION_END, 0, stack };
	int      r = trace_text_number(&w->stacks, e->name, true, &args[3]);

	put(w, s, e->time, EV_REGION, args, 5);
	return r;
}

static int
event(struct trace_writer *w, const struct story_event *e)
{
	struct trace_stream *s = e->type == STORY_SAMPLE ? w->samples : stream_of(w, e->cpu);
	uint64_t             args[4] = { 0 }, stack;
	int                  r = s ? trace_stack_number(&w->stacks, e, &stack) : -ENOMEM;

	if (r < 0)
		return r;
	switch (e->type) {
	case STORY_CPU_START:
		put_proc_start(w, s, e);
		break;
	case STORY_CPU_STOP:
		put(w, s, e->time, EV_PROC_STOP, args, 1);
		break;
	case STORY_CREATE:
		return put_create(w, s, e, stack);
	case STORY_START:
		return put_start(w, s, e);
	case STORY_PREEMPT:
		args[1] = stack;
		put(w, s, e->time, EV_GO_PREEMPT, args, 2);
		break;
	case STORY_BLOCK:
		put_block(w, s, e, stack);
		break;
	case STORY_UNBLOCK:
		args[1] = e->other->serial;
		args[2] = e->other->sequence++;
		args[3] = stack;
		put(w, s, e->time, EV_GO_UNBLOCK, args, 4);
		break;
	case STORY_END:
		put(w, s, e->time, EV_GO_END, args, 1);
		break;
	case STORY_LABEL: /* at the next start */
		break;
	case STORY_SAMPLE:
		put_sample(w, e, stack);
		break;
	case STORY_HEAP:
		args[1] = e->value;
		put(w, s, e->time, EV_HEAP_ALLOC, args, 2);
		break;
	case STORY_TASK_BEGIN:
	case STORY_TASK_END:
		return put_task(w, s, e, stack);
	case STORY_REGION_BEGIN:
	case STORY_REGION_END:
		return put_region(w, s, e, stack);
	case STORY_LOG:
		r = trace_text_number(&w->stacks, e->name, true, &args[1]);
		return r < 0 ? r : put_log(w, s, e, args[1], stack);
	}
	return 0;
}

static int
begin(struct trace_writer *w)
{
	static const char header[16] = "go 1.19 trace";
	uint64_t          args[] = { TRACE_NS_PER_S };
	uint8_t           buf[1 + TRACE_VARINT_MAX];
	struct v1        *v = arena_alloc(w->arena, sizeof(*v));

	lines_bytes(&w->out, header, sizeof(header));
	trace_streams_init(&w->streams, w->arena, &w->out, batch_head, w->cpu_count + 2);
	w->tables = trace_stream_open(&w->streams, NOBODY);
	w->samples = trace_stream_open(&w->streams, NOBODY);
	if (!v || !w->tables || !w->samples)
		return -ENOMEM;
	v->cpus = arena_array(w->arena, w->cpu_count + 1, sizeof(struct trace_stream *));
	w->state = v;
	trace_stream_delta(&w->streams, w->tables, 0, sizeof(buf));
	trace_stream_add(&w->streams, w->tables, buf, pack(buf, EV_FREQUENCY, args, 1));
	return v->cpus ? 0 : -ENOMEM;
}

static void
end(struct trace_writer *w)
{
	trace_streams_flush(&w->streams);
}

const struct trace_format gotrace_v1 = { { write_text, write_stack }, begin, event, end, NULL };
