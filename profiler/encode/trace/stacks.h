/*
 * stacks.h - stacks and texts of a trace, each written once and then a number.
 *
 * First note all stacks that will be asked for, then resolve them in one go, then ask
 * for numbers: what is new is handed to the writer in time.
 */
#ifndef ENCODE_TRACE_STACKS_H
#define ENCODE_TRACE_STACKS_H

#include "frames.h"
#include "story.h"
#include "strings.h"

#define TRACE_TEXT_MAX   1024 /* bytes: readers of Go's newer format take no more */
#define TRACE_FRAMES_MAX 100  /* with inlined ones: their records end at 2048 bytes in the older */

/* Readers look a frame up by its pc alone, so each pc is one function, file and line;
 * where functions were inlined, all but one of an address have a number made up. */
struct trace_frame {
	uint64_t pc;
	uint64_t function, file; /* numbers of texts */
	uint64_t line;
};

struct trace_stacks_out {
	/* Both get what is new, in the order of numbers from 1 on; 0 or a negative errno. */
	int (*text)(void *arg, uint64_t number, const char *text, size_t size);
	int (*stack)(void *arg, uint64_t number, const struct trace_frame *frames, unsigned count);
};

struct trace_stacks {
	struct arena_budget *budget;
	struct arena        *arena;
	struct symbols      *symbols;
	const struct trace_stacks_out *out;
	void                *arg;
	struct arena_budget  texts_budget;
	struct arena         texts;
	struct strings       strings; /* of these */
	struct frames_list   pcs;
	struct table         noted;  /* stacks and pcs */
	struct table         roots;  /* serial of a thread to the first stack it had */
	struct table         begins; /* serial of a thread to the frame where it began */
	struct table         places; /* pc to struct place */
	struct table         shown;  /* pcs that are given out */
	struct table         stacks; /* to their numbers */
	uint64_t             made_pcs, count;
	struct trace_frame   frame[TRACE_FRAMES_MAX];
	struct frames        scratch;
	char                 text[TRACE_TEXT_MAX]; /* that was made clean last */
};

void trace_stacks_init(struct trace_stacks *ts, struct arena *a, struct symbols *s,
	const struct trace_stacks_out *out, void *arg);
void trace_stacks_release(struct trace_stacks *ts);
/* An event that is going to be asked for.  0 or -ENOMEM. */
int  trace_stacks_note(struct trace_stacks *ts, const struct story_event *e);
/* After the last of them; lines are looked up here. */
void trace_stacks_resolve(struct trace_stacks *ts);

/* As much of a text as is written, made clean: until the next one. */
const char *trace_text_clean(struct trace_stacks *ts, const char *text, size_t *ret_size);
/* The number of a text, 0 of "".  keep: it outlives the table.  0 or what the writer answered. */
int  trace_text_number(struct trace_stacks *ts, const char *text, bool keep, uint64_t *ret);
/* Of an event's stack, 0 if it has none. */
int  trace_stack_number(struct trace_stacks *ts, const struct story_event *e, uint64_t *ret);
/* Of the stack that has nothing but the function where a thread began. */
int  trace_begin_number(struct trace_stacks *ts, const struct story_thread *t, uint64_t *ret);

#endif
