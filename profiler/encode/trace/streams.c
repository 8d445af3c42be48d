/*
 * streams.c - many sequences of records at once, written as batches.
 *
 * What a stranger would get wrong: times are told as the distance from the record
 * before in the same batch.  So whoever encodes one asks for the distance first, which
 * may end the batch if there is no room for the record.
 *
 * Why not a batch for each turn of a processor: it costs as much as the records in it.
 *
 * Tests: tests/encode/test_gotrace.c
 */
#include <config.h>

#include "streams.h"

#include <string.h>

#define ALL_BYTES ((size_t)8 << 20) /* of all buffers, where that is possible */
#define ROOM_MIN  ((size_t)256)
#define ROOM_MAX  ((size_t)16 << 10) /* bytes; readers take 64 KiB */

void
trace_streams_init(struct trace_streams *ss, struct arena *a, struct lines *out, trace_batch_head_fn *head,
	size_t expected)
{
	size_t room = ALL_BYTES / (expected + 1);

	*ss = (struct trace_streams){ .arena = a, .out = out, .head = head };
	ss->room = room < ROOM_MIN ? ROOM_MIN : room > ROOM_MAX ? ROOM_MAX : room;
}

struct trace_stream *
trace_stream_open(struct trace_streams *ss, uint64_t id)
{
	struct trace_stream *s = ss->free;

	if (s)
		ss->free = s->next;
	else
		s = arena_alloc(ss->arena, sizeof(*s) + ss->room);
	if (!s)
		return NULL;
	*s = (struct trace_stream){ .next = ss->live, .id = id };
	if (ss->live)
		ss->live->before = s;
	ss->live = s;
	return s;
}

/* Writes what is there. */
static void
trace_stream_flush(struct trace_streams *ss, struct trace_stream *s)
{
	if (!s->used)
		return;
	ss->head(ss->out, s, s->used);
	lines_bytes(ss->out, s->data, s->used);
	s->used = 0;
}

uint64_t
trace_stream_delta(struct trace_streams *ss, struct trace_stream *s, uint64_t time, size_t size)
{
	uint64_t delta;

	if (s->used + size > ss->room)
		trace_stream_flush(ss, s);
	if (!s->used)
		s->start = s->last = time;
	delta = time - s->last;
	s->last = time;
	return delta;
}

void
trace_stream_add(struct trace_streams *ss, struct trace_stream *s, const void *data, size_t size)
{
	if (size > ss->room) { /* a batch of its own */
		ss->head(ss->out, s, size);
		lines_bytes(ss->out, data, size);
		return;
	}
	memcpy(s->data + s->used, data, size);
	s->used += size;
}

void
trace_stream_close(struct trace_streams *ss, struct trace_stream *s)
{
	trace_stream_flush(ss, s);
	if (s->before)
		s->before->next = s->next;
	else
		ss->live = s->next;
	if (s->next)
		s->next->before = s->before;
	s->next = ss->free;
	ss->free = s;
}

void
trace_streams_flush(struct trace_streams *ss)
{
	for (struct trace_stream *s = ss->live; s; s = s->next)
		trace_stream_flush(ss, s);
}
