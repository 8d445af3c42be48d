/*
 * streams.h - many sequences of records at once, written as batches.
 *
 * Each processor or thread has a sequence of its own, which readers want in order; the
 * sequences may be mixed as it comes.  A stream collects records until its buffer is
 * full and is then written as one batch, with the head that the format wants.
 */
#ifndef ENCODE_TRACE_STREAMS_H
#define ENCODE_TRACE_STREAMS_H

#include "lines.h"

struct trace_stream {
	struct trace_stream *next, *before; /* all that live; or the next free one */
	uint64_t             id;
	uint64_t             start, last; /* times: of the batch, of its last record */
	size_t               used;
	uint8_t              data[];
};

/* Writes what stands before the bytes of a batch. */
typedef void trace_batch_head_fn(struct lines *out, const struct trace_stream *s, size_t size);

struct trace_streams {
	struct arena        *arena;
	struct lines        *out;
	trace_batch_head_fn *head;
	size_t               room; /* bytes of one stream's buffer */
	struct trace_stream *live, *free;
};

/* expected: about how many streams there will be, which decides on the size of each. */
void trace_streams_init(struct trace_streams *ss, struct arena *a, struct lines *out, trace_batch_head_fn *head,
	size_t expected);
/* An empty one; NULL without memory. */
struct trace_stream *trace_stream_open(struct trace_streams *ss, uint64_t id);
/* The nanoseconds since the record before in the batch; 0: it is the first. */
uint64_t trace_stream_delta(struct trace_streams *ss, struct trace_stream *s, uint64_t time, size_t size);
/* After trace_stream_delta() with the most that size can be. */
void trace_stream_add(struct trace_streams *ss, struct trace_stream *s, const void *data, size_t size);
/* Flushes, and gives the buffer to the next one. */
void trace_stream_close(struct trace_streams *ss, struct trace_stream *s);
void trace_streams_flush(struct trace_streams *ss);

#endif
