/*
 * go.h - what both formats of Go's execution traces say alike.
 *
 * Their records have other numbers and other framing; but births, wake-ups, tasks and
 * texts have the same arguments in the same order.
 */
#ifndef ENCODE_GOTRACE_H
#define ENCODE_GOTRACE_H

#include "writer.h"

#define GOTRACE_NOBODY   UINT64_MAX
#define GOTRACE_ARGS_MAX 6 /* varints of a record, but for a stack's */

/* What a format has of its own. */
struct gotrace {
	char header[16];
	/* A record's bytes; returns how many. */
	size_t (*pack)(uint8_t *p, unsigned type, const uint64_t *args, size_t count);
	uint8_t text, cpu_stop, create, unblock, end, heap, task_begin, task_end; /* types of records */
};

/* One record; args[0] is for the time. */
void   gotrace_put(struct trace_writer *w, struct trace_stream *s, uint64_t time, unsigned type, uint64_t *args,
	size_t count);
/* Bytes of a table, which have no time. */
void   gotrace_put_bytes(struct trace_writer *w, struct trace_stream *s, const uint8_t *data, size_t size);
/* For struct trace_stacks_out. */
int    gotrace_text(void *writer, uint64_t number, const char *text, size_t size);
/* The bytes of one frame of a stack; returns how many. */
size_t gotrace_frame(uint8_t *p, const struct trace_frame *f);
/* The number of a thread's label as it is now: "worker-3", "request=7", or "worker-3 request=7".  0 or a negative
 * errno. */
int    gotrace_label(struct trace_writer *w, struct story_thread *t);
/* The number of a region's name: readers want the same at both its ends.  0 or a negative errno. */
int    gotrace_region(struct trace_writer *w, const struct story_event *e, uint64_t *ret);
/* Is a block a system call that Go has a profile for: of a file, not of what others or a time
 * bring?  Its thread is in it until it starts. */
bool   gotrace_is_call(const struct story_event *e);
/* Does a thread that starts come back from one? */
bool   gotrace_returns(struct story_thread *t);
/* An event that both say alike.  0 or a negative errno. */
int    gotrace_event(struct trace_writer *w, struct trace_stream *s, const struct story_event *e, uint64_t stack);
void   gotrace_end(struct trace_writer *w);

#endif
