/*
 * go_v2.c - the format of Go 1.22's execution traces, which go tool trace opens
 * from 1.22 on; it shows CPU samples by thread.
 *
 * A file is a header and batches: 1, generation, kernel thread, time, size, bytes.  All
 * is one generation.  A batch of events is a kernel thread's; texts, stacks, samples
 * and the frequency have batches of their own, told by their first byte.
 *
 * What a stranger would get wrong:
 * - Whose an event is follows from what its kernel thread did before: started a
 *   processor, then a thread.
 * - The number of varints is fixed by an event's type; there is no length.
 * - Every processor is told to be idle before its first start; its starts are counted,
 *   and so are each thread's starts and unblocks.
 * - A text or stack that is missing makes the file unreadable; a batch of texts or stacks
 *   that is empty, too.
 *
 * Tests: tests/encode/test_gotrace.c, tests/encode/gotrace.t
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "go.h"
#include "varint.h"

enum batch {
	BATCH_EVENTS = 1,
	BATCH_STACKS = 2,
	BATCH_STACK = 3,
	BATCH_STRINGS = 4,
	BATCH_STRING = 5,
	BATCH_SAMPLES = 6,
	BATCH_SAMPLE = 7,
	BATCH_FREQUENCY = 8,
};

enum record {
	EV_PROCS_CHANGE = 9,
	EV_PROC_START = 10,
	EV_PROC_STOP = 11,
	EV_PROC_STATUS = 13,
	EV_GO_CREATE = 14,
	EV_GO_START = 16,
	EV_GO_DESTROY = 17,
	EV_GO_DESTROY_SYSCALL = 18,
	EV_GO_STOP = 19,
	EV_GO_BLOCK = 20,
	EV_GO_UNBLOCK = 21,
	EV_GO_SYSCALL_BEGIN = 22,
	EV_GO_SYSCALL_END_BLOCKED = 24,
	EV_HEAP_ALLOC = 37,
	EV_GO_LABEL = 39,
	EV_TASK_BEGIN = 40,
	EV_TASK_END = 41,
	EV_REGION_BEGIN = 42,
	EV_REGION_END = 43,
	EV_LOG = 44,
};

#define GENERATION  1
#define PROC_IDLE   2
/* Above all kernel ids, and told apart by batch_head(). */
#define ID_TEXTS    ((uint64_t)1 << 40)
#define ID_STACKS   ((uint64_t)2 << 40)
#define ID_SAMPLES  ((uint64_t)3 << 40)

struct v2 {
	uint64_t *started; /* by processor: how often; 0: not told of yet */
	bool      procs_told;
};

static size_t
pack(uint8_t *p, unsigned type, const uint64_t *args, size_t count)
{
	size_t n = 0;

	p[n++] = (uint8_t)type;
	for (size_t i = 0; i < count; i++)
		n += varint_write(p + n, args[i]);
	return n;
}

static void
batch_head(struct lines *out, const struct trace_stream *s, size_t size)
{
	bool     table = s->id >= ID_TEXTS;
	uint64_t args[] = { GENERATION, table ? GOTRACE_NOBODY : s->id, table ? 1 : s->start, size + table };
	uint8_t  head[2 + 4 * VARINT_MAX];
	size_t   n = pack(head, BATCH_EVENTS, args, 4);

	if (table)
		head[n++] = s->id == ID_TEXTS ? BATCH_STRINGS : s->id == ID_STACKS ? BATCH_STACKS : BATCH_SAMPLES;
	lines_bytes(out, head, n);
}

static const struct gotrace v2 = { "go 1.22 trace", pack, BATCH_STRING, EV_PROC_STOP, EV_GO_CREATE, EV_GO_UNBLOCK,
	EV_GO_DESTROY, EV_HEAP_ALLOC, EV_TASK_BEGIN, EV_TASK_END };

/* ---- tables ---- */

static int
write_stack(void *arg, uint64_t number, const struct trace_frame *frames, unsigned count)
{
	struct trace_writer *w = arg;
	uint8_t              buf[1 + (2 + 4 * TRACE_FRAMES_MAX) * VARINT_MAX];
	uint64_t             args[] = { number, count };
	size_t               n = pack(buf, BATCH_STACK, args, 2);

	for (unsigned i = 0; i < count; i++)
		n += gotrace_frame(buf + n, &frames[i]);
	gotrace_put_bytes(w, w->tables, buf, n);
	return 0;
}

static void
put_sample(struct trace_writer *w, const struct story_event *e, uint64_t stack)
{
	uint64_t args[] = { e->time, (uint32_t)e->on->tid, e->cpu == STORY_NO_CPU ? GOTRACE_NOBODY : e->cpu,
		e->on->serial, stack };
	uint8_t  buf[1 + 5 * VARINT_MAX];

	gotrace_put_bytes(w, w->samples, buf, pack(buf, BATCH_SAMPLE, args, 5));
}

/* ---- events ---- */

static void
put_proc_start(struct trace_writer *w, struct trace_stream *s, const struct story_event *e)
{
	struct v2 *v = w->state;
	uint64_t   idle[] = { 0, e->cpu, PROC_IDLE }, start[] = { 0, e->cpu, 0 }, gone[] = { 0 };

	if (e->on->slot->caller && e->on->slot->caller != e->on) { /* who had the kernel's id before ended in a call */
		gotrace_put(w, s, e->time, EV_GO_DESTROY_SYSCALL, gone, 1);
		e->on->slot->caller = NULL;
	}
	if (!v->started[e->cpu])
		gotrace_put(w, s, e->time, EV_PROC_STATUS, idle, 3);
	start[2] = ++v->started[e->cpu];
	gotrace_put(w, s, e->time, EV_PROC_START, start, 3);
}

static int
put_label(struct trace_writer *w, struct trace_stream *s, const struct story_event *e)
{
	int      r = gotrace_label(w, e->on);
	uint64_t args[] = { 0, e->on->label_number };

	gotrace_put(w, s, e->time, EV_GO_LABEL, args, 2);
	return r;
}

static int
put_start(struct trace_writer *w, struct trace_stream *s, const struct story_event *e)
{
	struct v2           *v = w->state;
	struct story_thread *t = e->on;
	uint64_t             args[] = { 0, t->serial, t->sequence++ }, procs[] = { 0, w->cpu_count, 0 }, back[] = { 0 };

	if (gotrace_returns(t))
		gotrace_put(w, s, e->time, EV_GO_SYSCALL_END_BLOCKED, back, 1);
	gotrace_put(w, s, e->time, EV_GO_START, args, 3);
	if (!v->procs_told)
		gotrace_put(w, s, e->time, EV_PROCS_CHANGE, procs, 3);
	v->procs_told = true;
	return t->label_told != t->label ? put_label(w, s, e) : 0;
}

/* The words count: tools sort blocks by parts of them. */
static int
put_stop(struct trace_writer *w, struct trace_stream *s, const struct story_event *e, uint64_t stack)
{
	static const char *const reasons[] = {
		[TRACE_OTHER] = "unspecified",
		[TRACE_SYNC] = "sync",
		[TRACE_COND] = "sync.(*Cond).Wait",
		[TRACE_NETWORK] = "network",
		[TRACE_SLEEP] = "sleep",
	};
	bool        block = e->type == STORY_BLOCK;
	const char *reason = !block ? "preempted" : reasons[e->reason <= TRACE_SLEEP ? e->reason : TRACE_OTHER];
	uint64_t    args[] = { 0, 0, stack };
	int         r = trace_text_number(&w->stacks, reason, true, &args[1]);

	gotrace_put(w, s, e->time, block ? EV_GO_BLOCK : EV_GO_STOP, args, 3);
	return r;
}

/* It counts as one more start of the processor. */
static void
put_call(struct trace_writer *w, struct trace_stream *s, const struct story_event *e, uint64_t stack)
{
	struct v2 *v = w->state;
	uint64_t   args[] = { 0, ++v->started[e->cpu], stack };

	gotrace_put(w, s, e->time, EV_GO_SYSCALL_BEGIN, args, 3);
}

static int
put_region(struct trace_writer *w, struct trace_stream *s, const struct story_event *e, uint64_t stack)
{
	uint64_t args[] = { 0, e->value, 0, stack };
	int      r = gotrace_region(w, e, &args[2]);

	gotrace_put(w, s, e->time, e->type == STORY_REGION_BEGIN ? EV_REGION_BEGIN : EV_REGION_END, args, 4);
	return r;
}

static int
put_log(struct trace_writer *w, struct trace_stream *s, const struct story_event *e, uint64_t stack)
{
	uint64_t args[] = { 0, e->value, 0, 0, stack };
	int      r = trace_text_number(&w->stacks, e->name, true, &args[2]);

	if (!r)
		r = trace_text_number(&w->stacks, e->text, true, &args[3]);
	gotrace_put(w, s, e->time, EV_LOG, args, 5);
	return r;
}

/* Of the kernel thread in which an event is seen. */
static struct trace_stream *
stream_of(struct trace_writer *w, const struct story_thread *t)
{
	if (!t->slot->writer)
		t->slot->writer = trace_stream_open(&w->streams, (uint32_t)t->tid);
	return t->slot->writer;
}

static int
event(struct trace_writer *w, const struct story_event *e)
{
	struct trace_stream *s = stream_of(w, e->on);
	uint64_t             stack;
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
	case STORY_BLOCK:
		if (!gotrace_is_call(e))
			return put_stop(w, s, e, stack);
		put_call(w, s, e, stack);
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
		r = gotrace_event(w, s, e, stack);
	}
	if (e->type == STORY_CPU_STOP && e->on->state == STORY_DEAD) {
		trace_stream_close(&w->streams, s);
		e->on->slot->writer = NULL;
	}
	return r;
}

/* The frequency comes first, so that a file which was cut has it. */
static void
write_frequency(struct trace_writer *w)
{
	uint8_t  body[1 + VARINT_MAX], head[1 + 4 * VARINT_MAX];
	uint64_t frequency[] = { CLOCK_NS_PER_S }, args[] = { GENERATION, GOTRACE_NOBODY, 1, 0 };

	args[3] = pack(body, BATCH_FREQUENCY, frequency, 1);
	lines_bytes(&w->out, head, pack(head, BATCH_EVENTS, args, 4));
	lines_bytes(&w->out, body, args[3]);
}

static int
begin(struct trace_writer *w)
{
	struct v2 *v = arena_alloc(w->arena, sizeof(*v));

	lines_bytes(&w->out, v2.header, sizeof(v2.header));
	write_frequency(w);
	trace_streams_init(&w->streams, w->arena, &w->out, batch_head, w->thread_count + 3);
	w->texts = trace_stream_open(&w->streams, ID_TEXTS);
	w->tables = trace_stream_open(&w->streams, ID_STACKS);
	w->samples = trace_stream_open(&w->streams, ID_SAMPLES);
	if (!v || !w->texts || !w->tables || !w->samples)
		return -ENOMEM;
	v->started = arena_array(w->arena, w->cpu_count + 1, sizeof(*v->started));
	w->state = v;
	return v->started ? 0 : -ENOMEM;
}

const struct trace_format gotrace_v2 = { { gotrace_text, write_stack }, begin, event, gotrace_end, NULL, &v2 };
