/*
 * writer.h - what the formats of execution traces have in common.
 */
#ifndef ENCODE_TRACE_FORMAT_H
#define ENCODE_TRACE_FORMAT_H

#include "clock.h"
#include "encode.h"
#include "stacks.h"
#include "streams.h"

struct gotrace;
struct trace_format;

/* One trace on its way out. */
struct trace_writer {
	const struct trace  *trace;
	const struct trace_format *format;
	struct arena        *arena;
	struct trace_stacks  stacks;
	struct lines         out;
	struct trace_streams streams;
	struct trace_stream *texts, *tables, *samples; /* as the format has them */
	size_t               cpu_count, thread_count;  /* that the story will have */
	uint64_t             base;                     /* its time where the trace starts */
	void                *state;                    /* the format's own */
};

/* Those that answer, answer 0 or a negative errno; errors of writing show at the end. */
struct trace_format {
	struct trace_stacks_out tables; /* their arg is the writer */
	int  (*begin)(struct trace_writer *w);
	int  (*event)(struct trace_writer *w, const struct story_event *e);
	void (*end)(struct trace_writer *w);
	void (*drop)(struct trace_writer *w); /* what is not the arena's; NULL: nothing is */
	const struct gotrace *go; /* of Go's formats: go.h */
};

#endif
