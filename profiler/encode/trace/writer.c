/*
 * writer.c - an execution trace as a file that go tool trace or Perfetto opens.
 *
 *     trace --> the story, once: which stacks, how much did not fit
 *           --> names and lines of all their addresses, in one go
 *           --> the story once more --> a format's writer --> 64 KiB --> callback
 *
 * Telling it twice costs little and saves keeping it: what stays in memory are tables,
 * by the number of different stacks and threads, and one buffer for each stream.
 *
 * What a stranger would get wrong: what is said about the trace itself must be in it as
 * a log event at its beginning, when how much was left out is not known yet: the first
 * telling finds out.
 *
 * Tests: tests/encode/test_gotrace.c, tests/encode/gotrace.t
 */
#include <config.h>

#include "encode.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "comments.h"
#include "utc.h"
#include "writer.h"

#define NOTES_MAX 24 /* log events about the trace itself */

struct notes {
	struct arena *arena;
	const char   *text[NOTES_MAX + 1]; /* NULL at the end */
	size_t        count;
};

static int
note_event(void *arg, const struct story_event *e)
{
	struct trace_writer *w = arg;

	return trace_stacks_note(&w->stacks, e);
}

/* Nothing more is encoded when nobody takes it. */
static int
write_event(void *arg, const struct story_event *e)
{
	struct trace_writer *w = arg;
	int                  r = w->format->event(w, e);

	return r < 0 ? r : w->out.error;
}

static int
note_add(void *arg, const char *text, size_t size)
{
	struct notes *n = arg;

	if (n->count < NOTES_MAX)
		n->text[n->count] = arena_strndup(n->arena, text, size);
	n->count += n->count < NOTES_MAX && n->text[n->count];
	return 0;
}

static void
notes_make(struct notes *n, const struct trace *t, const struct story *s)
{
	char       text[128];
	struct utc utc;

	comments_split(t->comments, TRACE_COMMENTS_MAX, note_add, n);
	if (t->time_ns > 0) {
		utc_from_unix(t->time_ns / CLOCK_NS_PER_S, &utc);
		snprintf(text, sizeof(text), "began at %04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (int)utc.year, utc.month,
			utc.day, utc.hour, utc.minute, utc.second, (int)(t->time_ns / 1000000 % 1000));
		note_add(n, text, strlen(text));
	}
	if (t->lost) {
		snprintf(text, sizeof(text), "%" PRIu64 " records are lost: there was no room for them", t->lost);
		note_add(n, text, strlen(text));
	}
	if (s->repaired) {
		snprintf(text, sizeof(text), "%" PRIu64 " switches were not recorded and are made up", s->repaired);
		note_add(n, text, strlen(text));
	}
	if (s->dropped) {
		snprintf(text, sizeof(text), "%" PRIu64 " records contradict what is known and are left out", s->dropped);
		note_add(n, text, strlen(text));
	}
}

/* With what all formats need from the first telling. */
static int
write_trace(struct trace_writer *w)
{
	struct notes notes = { .arena = w->arena };
	struct story story;
	int          r = story_tell(&story, w->trace, w->arena->budget, NULL, note_event, w);

	w->cpu_count = story.cpu_count;
	w->thread_count = story.serial;
	w->base = story.base;
	notes_make(&notes, w->trace, &story);
	story_end(&story);
	if (r < 0)
		return r;
	trace_stacks_resolve(&w->stacks);
	r = w->format->begin(w);
	if (r < 0)
		return r;
	r = story_tell(&story, w->trace, w->arena->budget, notes.text, write_event, w);
	if (!r)
		w->format->end(w);
	story_end(&story);
	return r;
}

int
encode_trace(const struct trace *t, const struct trace_format *format, struct symbols *s,
	encode_write_fn *write, void *arg)
{
	struct arena_budget        budget = { 0, ENCODE_MEMORY_MAX };
	struct arena               arena;
	struct trace_writer       *w;
	int                        r = -ENOMEM;

	arena_init(&arena, &budget);
	w = arena_alloc(&arena, sizeof(*w));
	if (!w)
		goto out;
	w->trace = t;
	w->format = format;
	w->arena = &arena;
	trace_stacks_init(&w->stacks, &arena, s, &format->tables, w);
	r = lines_open(&w->out, &arena, write, arg);
	if (!r)
		r = write_trace(w);
	if (!r)
		r = lines_close(&w->out);
	if (w->state && format->drop)
		format->drop(w);
	trace_stacks_release(&w->stacks);
out:
	arena_release(&arena);
	return r;
}
