/*
 * go.c - the part of Go's execution traces that is the same in both formats.
 *
 * go_v1.c and go_v2.c have the rest: how records are framed, where they go,
 * and what is said in other words.
 *
 * What a stranger would get wrong: a thread's sequence number counts its starts and
 * unblocks, from 1 at its creation; nothing else touches it.  Nobody unblocks who is in a
 * system call: its end is said where the thread starts, by its own kernel thread.
 *
 * Tests: tests/encode/test_gotrace.c, tests/encode/gotrace.t
 */
#include <config.h>

#include "go.h"

#include <stdio.h>
#include <string.h>

#include "varint.h"

#define HEAD_MAX 2 /* bytes of a record before its varints */

void
gotrace_put(struct trace_writer *w, struct trace_stream *s, uint64_t time, unsigned type, uint64_t *args, size_t count)
{
	uint8_t buf[HEAD_MAX + GOTRACE_ARGS_MAX * VARINT_MAX];

	args[0] = trace_stream_delta(&w->streams, s, time, sizeof(buf));
	trace_stream_add(&w->streams, s, buf, w->format->go->pack(buf, type, args, count));
}

void
gotrace_put_bytes(struct trace_writer *w, struct trace_stream *s, const uint8_t *data, size_t size)
{
	trace_stream_delta(&w->streams, s, 0, size);
	trace_stream_add(&w->streams, s, data, size);
}

int
gotrace_text(void *arg, uint64_t number, const char *text, size_t size)
{
	struct trace_writer *w = arg;
	uint8_t              buf[1 + 2 * VARINT_MAX + TRACE_TEXT_MAX];
	size_t               n = 0;

	buf[n++] = w->format->go->text;
	n += varint_write(buf + n, number);
	n += varint_write(buf + n, size);
	memcpy(buf + n, text, size);
	gotrace_put_bytes(w, w->texts, buf, n + size);
	return 0;
}

size_t
gotrace_frame(uint8_t *p, const struct trace_frame *f)
{
	size_t n = varint_write(p, f->pc);

	n += varint_write(p + n, f->function);
	n += varint_write(p + n, f->file);
	return n + varint_write(p + n, f->line);
}

int
gotrace_label(struct trace_writer *w, struct story_thread *t)
{
	char text[TRACE_NAME_MAX + TRACE_TEXT_MAX + 1]; /* what is cut here is not written anyway */

	t->label_told = t->label;
	snprintf(text, sizeof(text), "%s%s%s", t->name, *t->name && *t->label ? " " : "", t->label);
	return trace_text_number(&w->stacks, text, false, &t->label_number);
}

int
gotrace_region(struct trace_writer *w, const struct story_event *e, uint64_t *ret)
{
	struct story_region *region = e->on->regions;
	bool                 ends = e->type == STORY_REGION_END && region; /* one that began before the trace has none */
	int                  r = ends ? 0 : trace_text_number(&w->stacks, e->name, true, ret);

	if (ends)
		*ret = region->number;
	else if (region)
		region->number = *ret;
	return r;
}

bool
gotrace_is_call(const struct story_event *e)
{
	if (e->type != STORY_BLOCK || e->reason != TRACE_OTHER || e->made != STORY_TAKEN || (e->on->info && e->on->info->own))
		return false;
	e->on->slot->caller = e->on;
	return true;
}

bool
gotrace_returns(struct story_thread *t)
{
	bool returns = t->slot->caller == t;

	if (returns)
		t->slot->caller = NULL;
	return returns;
}

static int
put_create(struct trace_writer *w, struct trace_stream *s, const struct story_event *e, uint64_t stack)
{
	uint64_t args[] = { 0, e->other->serial, 0, stack };
	int      r = trace_begin_number(&w->stacks, e->other, &args[2]);

	e->other->sequence = 1;
	gotrace_put(w, s, e->time, w->format->go->create, args, 4);
	return r;
}

static int
put_task_begin(struct trace_writer *w, struct trace_stream *s, const struct story_event *e, uint64_t stack)
{
	uint64_t args[] = { 0, e->value, e->parent, 0, stack };
	int      r = trace_text_number(&w->stacks, e->name, true, &args[3]);

	gotrace_put(w, s, e->time, w->format->go->task_begin, args, 5);
	return r;
}

int
gotrace_event(struct trace_writer *w, struct trace_stream *s, const struct story_event *e, uint64_t stack)
{
	const struct gotrace *go = w->format->go;
	uint64_t              args[4] = { 0, e->value, stack };

	switch (e->type) {
	case STORY_CPU_STOP:
		gotrace_put(w, s, e->time, go->cpu_stop, args, 1);
		break;
	case STORY_CREATE:
		return put_create(w, s, e, stack);
	case STORY_UNBLOCK:
		if (e->other->slot->caller == e->other)
			break;
		args[1] = e->other->serial;
		args[2] = e->other->sequence++;
		args[3] = stack;
		gotrace_put(w, s, e->time, go->unblock, args, 4);
		break;
	case STORY_END:
		gotrace_put(w, s, e->time, go->end, args, 1);
		break;
	case STORY_HEAP:
		gotrace_put(w, s, e->time, go->heap, args, 2);
		break;
	case STORY_TASK_BEGIN:
		return put_task_begin(w, s, e, stack);
	case STORY_TASK_END:
		gotrace_put(w, s, e->time, go->task_end, args, 3);
		break;
	default: /* is a format's own */
		break;
	}
	return 0;
}

void
gotrace_end(struct trace_writer *w)
{
	trace_streams_flush(&w->streams);
}
