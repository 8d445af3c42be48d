/*
 * go_v1.c - the format of Go 1.19's execution traces, which every go tool trace
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
 * Tests: tests/encode/test_gotrace.c, tests/encode/gotrace.t
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "go.h"
#include "varint.h"

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
	EV_GO_SCHED = 17,
	EV_GO_PREEMPT = 18,
	EV_GO_SLEEP = 19,
	EV_GO_BLOCK = 20,
	EV_GO_UNBLOCK = 21,
	EV_GO_BLOCK_SYNC = 25,
	EV_GO_BLOCK_COND = 26,
	EV_GO_BLOCK_NET = 27,
	EV_GO_SYSCALL = 28,
	EV_GO_SYSEXIT = 29,
	EV_GO_SYSBLOCK = 30,
	EV_HEAP_ALLOC = 33,
	EV_STRING = 37,
	EV_GO_START_LABEL = 41,
	EV_TASK_CREATE = 45,
	EV_TASK_END = 46,
	EV_REGION = 47,
	EV_LOG = 48,
	EV_CPU_SAMPLE = 49,
};

#define STACK_MAX 2048 /* bytes of a stack's record: newer tools take no more */

struct v1 {
	struct trace_stream **cpus;
	bool                  procs_told;
};

static size_t
pack(uint8_t *p, unsigned type, const uint64_t *args, size_t count)
{
	uint8_t body[GOTRACE_ARGS_MAX * VARINT_MAX];
	size_t  size = 0, n = 0;

	for (size_t i = 0; i < count; i++)
		size += varint_write(body + size, args[i]);
	p[n++] = (uint8_t)(type | (count > 3 ? 3 : count - 1) << 6);
	if (count > 3)
		p[n++] = (uint8_t)size; /* below 128: one byte */
	memcpy(p + n, body, size);
	return n + size;
}

static const struct gotrace v1 = { "go 1.19 trace", pack, EV_STRING, EV_PROC_STOP, EV_GO_CREATE, EV_GO_UNBLOCK, EV_GO_END,
	EV_HEAP_ALLOC, EV_TASK_CREATE, EV_TASK_END };

static void
batch_head(struct lines *out, const struct trace_stream *s, size_t size)
{
	uint8_t  head[1 + 2 * VARINT_MAX];
	uint64_t args[] = { s->id, s->start };

	(void)size;
	lines_bytes(out, head, pack(head, EV_BATCH, args, 2));
}

/* The only record that something follows: the message. */
static int
put_log(struct trace_writer *w, struct trace_stream *s, const struct story_event *e, uint64_t stack)
{
	uint8_t     buf[2 + (GOTRACE_ARGS_MAX + 1) * VARINT_MAX + TRACE_TEXT_MAX];
	uint64_t    args[] = { 0, e->value, 0, stack };
	const char *text;
	size_t      size, n;
	int         r = trace_text_number(&w->stacks, e->name, true, &args[2]);

	if (r < 0)
		return r;
	text = trace_text_clean(&w->stacks, e->text, &size);
	args[0] = trace_stream_delta(&w->streams, s, e->time, sizeof(buf) - TRACE_TEXT_MAX + size);
	n = pack(buf, EV_LOG, args, 4);
	n += varint_write(buf + n, size);
	memcpy(buf + n, text, size);
	trace_stream_add(&w->streams, s, buf, n + size);
	return 0;
}

/* ---- tables ---- */

/* The root stays, whatever else has no room. */
static int
write_stack(void *arg, uint64_t number, const struct trace_frame *frames, unsigned count)
{
	struct trace_writer *w = arg;
	uint8_t              body[STACK_MAX], buf[STACK_MAX + 2 * VARINT_MAX], last[4 * VARINT_MAX];
	size_t               root = gotrace_frame(last, &frames[count - 1]), size = 0, n = 0, head;
	unsigned             done = 0;

	for (; done + 1 < count && size + sizeof(last) + root + 2 * VARINT_MAX < STACK_MAX; done++)
		size += gotrace_frame(body + size, &frames[done]);
	memcpy(body + size, last, root);
	size += root;
	head = varint_write(buf, number) + varint_write(buf, done + 1u);
	buf[n++] = EV_STACK | 3 << 6;
	n += varint_write(buf + n, head + size);
	n += varint_write(buf + n, number);
	n += varint_write(buf + n, done + 1u);
	memcpy(buf + n, body, size);
	gotrace_put_bytes(w, w->tables, buf, n + size);
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

	gotrace_put(w, s, e->time, EV_PROC_START, start, 2);
	if (!v->procs_told)
		gotrace_put(w, s, e->time, EV_GOMAXPROCS, procs, 3);
	v->procs_told = true;
}

/* With its name, which older tools show instead of the function's, and newer ones beside it. */
static int
put_start(struct trace_writer *w, struct trace_stream *s, const struct story_event *e)
{
	struct story_thread *t = e->on;
	int                  r = t->label_told != t->label ? gotrace_label(w, t) : 0;
	uint64_t             args[] = { 0, t->serial, t->sequence, 0 };

	if (gotrace_returns(t)) {
		gotrace_put(w, s, e->time, EV_GO_SYSEXIT, args, 4);
		args[2] = ++t->sequence;
	}
	args[3] = t->label_number;
	t->sequence++;
	gotrace_put(w, s, e->time, t->label_number ? EV_GO_START_LABEL : EV_GO_START, args, t->label_number ? 4 : 3);
	return r;
}

/* Only who starts can say its label: the thread yields, and is started at once. */
static int
put_label(struct trace_writer *w, struct trace_stream *s, const struct story_event *e)
{
	uint64_t before = e->on->label_number, args[] = { 0, 0 };
	int      r = gotrace_label(w, e->on);

	if (r < 0 || e->on->label_number == before)
		return r;
	gotrace_put(w, s, e->time, EV_GO_SCHED, args, 2);
	return put_start(w, s, e);
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
	uint64_t args[] = { 0, stack }, block[] = { 0 };

	if (gotrace_is_call(e)) {
		gotrace_put(w, s, e->time, EV_GO_SYSCALL, args, 2);
		gotrace_put(w, s, e->time, EV_GO_SYSBLOCK, block, 1);
		return;
	}
	gotrace_put(w, s, e->time, e->reason <= TRACE_SLEEP ? types[e->reason] : EV_GO_BLOCK, args, 2);
}

static void
put_sample(struct trace_writer *w, const struct story_event *e, uint64_t stack)
{
	uint64_t args[] = { 0, e->time, e->cpu == STORY_NO_CPU ? GOTRACE_NOBODY : e->cpu, e->on->serial, stack };

	gotrace_put(w, w->samples, 0, EV_CPU_SAMPLE, args, 5);
}

static int
put_region(struct trace_writer *w, struct trace_stream *s, const struct story_event *e, uint64_t stack)
{
	uint64_t args[] = { 0, e->value, e->type == STORY_REGION_END, 0, stack };
	int      r = gotrace_region(w, e, &args[3]);

	gotrace_put(w, s, e->time, EV_REGION, args, 5);
	return r;
}

static int
event(struct trace_writer *w, const struct story_event *e)
{
	struct trace_stream *s = e->type == STORY_SAMPLE ? w->samples : stream_of(w, e->cpu);
	uint64_t             args[2] = { 0 }, stack;
	int                  r = s ? trace_stack_number(&w->stacks, e, &stack) : -ENOMEM;

	if (r < 0)
		return r;
	switch (e->type) {
	case STORY_CPU_START:
		put_proc_start(w, s, e);
		break;
	case STORY_START:
		return put_start(w, s, e);
	case STORY_PREEMPT:
		args[1] = stack;
		gotrace_put(w, s, e->time, EV_GO_PREEMPT, args, 2);
		break;
	case STORY_BLOCK:
		put_block(w, s, e, stack);
		break;
	case STORY_LABEL:
		return put_label(w, s, e);
	case STORY_SAMPLE:
		put_sample(w, e, stack);
		break;
	case STORY_REGION_BEGIN:
	case STORY_REGION_END:
		return put_region(w, s, e, stack);
	case STORY_LOG:
		return put_log(w, s, e, stack);
	default:
		return gotrace_event(w, s, e, stack);
	}
	return 0;
}

static int
begin(struct trace_writer *w)
{
	uint64_t   args[] = { CLOCK_NS_PER_S };
	uint8_t    buf[1 + VARINT_MAX];
	struct v1 *v = arena_alloc(w->arena, sizeof(*v));

	lines_bytes(&w->out, v1.header, sizeof(v1.header));
	trace_streams_init(&w->streams, w->arena, &w->out, batch_head, w->cpu_count + 2);
	w->texts = w->tables = trace_stream_open(&w->streams, GOTRACE_NOBODY);
	w->samples = trace_stream_open(&w->streams, GOTRACE_NOBODY);
	if (!v || !w->tables || !w->samples)
		return -ENOMEM;
	v->cpus = arena_array(w->arena, w->cpu_count + 1, sizeof(struct trace_stream *));
	w->state = v;
	gotrace_put_bytes(w, w->tables, buf, pack(buf, EV_FREQUENCY, args, 1));
	return v->cpus ? 0 : -ENOMEM;
}

const struct trace_format gotrace_v1 = { { gotrace_text, write_stack }, begin, event, gotrace_end, NULL, &v1 };
