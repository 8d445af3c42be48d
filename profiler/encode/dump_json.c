/*
 * dump_json.c - a dump of all threads for programs, as JSON: goroutine?format=dump.
 *
 *     {"version": 1, "program": "...", "pid": 1, "time_ns": "...", "deadlocks": [[11, 12]],
 *      "threads": [{"id": 11, "name": "payer", "state": "sync.Mutex.Lock", "seconds": 12, "ours": false,
 *                   "labels": [["tenant", "acme"]], "waits": {...} or null,
 *                   "frames": [["function", "file", line, "object", inlined], ...], "created_by": [...]}]}
 *
 * What a stranger would get wrong: a frame whose last number is 1 is inlined into the one behind it; a thread that did
 * not answer has no frames; "seconds" is how long it has been seen to wait, and null where that is not known.
 *
 * Tests: tests/threads/deadlock.t, tests/serve/viewer.t.
 */
#include <config.h>

#include "encode.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "frames.h"
#include "labels.h"
#include "lines.h"
#include "wait_state.h"

#define FORM_VERSION 1
#define STATE_BYTES  32

struct writing {
	const struct dump *dump;
	struct symbols    *symbols;
	struct frames     *frames;
	struct lines       lines;
	int64_t            now_ns; /* of the monotonic clock */
};

static void
write_member(struct lines *l, const char *name, const char *text)
{
	lines_print(l, ", \"%s\": ", name);
	lines_json(l, text);
}

/* Each function at an address is a frame, the inlined ones first. */
static void
write_frames(struct writing *w, const uintptr_t *pcs, unsigned count)
{
	struct lines *l = &w->lines;
	bool          more = false;

	lines_text(l, "[");
	for (unsigned i = 0; i < count; i++) {
		frames_of(w->symbols, pcs[i], w->frames);
		for (unsigned k = 0; k < w->frames->count; k++) {
			const struct symbol_frame *f = &w->frames->frame[k];

			lines_text(l, more ? ", [" : "[");
			lines_json(l, f->name);
			lines_text(l, ", ");
			lines_json(l, f->file ? f->file : "");
			lines_print(l, ", %d, ", f->file ? f->line : 0);
			lines_json(l, f->object ? f->object : "");
			lines_print(l, ", %d]", k + 1 < w->frames->count);
			more = true;
		}
	}
	lines_text(l, "]");
}

static void
write_labels(struct lines *l, uint32_t set)
{
	struct label labels[LABELS_MAX];
	unsigned     n = set ? labels_read(set, labels) : 0;

	lines_text(l, ", \"labels\": [");
	for (unsigned i = 0; i < n; i++) {
		lines_text(l, i ? ", [" : "[");
		lines_json(l, labels[i].key);
		lines_text(l, ", ");
		lines_json(l, labels[i].value);
		lines_text(l, "]");
	}
	lines_text(l, "]");
}

static void
write_lock(struct writing *w, const struct dump_lock *lock)
{
	struct lines      *l = &w->lines;
	struct symbol_data data;
	bool               named = lock->kind != DUMP_NO_LOCK && symbols_data(w->symbols, lock->address, &data);

	lines_text(l, ", \"waits\": ");
	if (lock->kind == DUMP_NO_LOCK) {
		lines_text(l, "null");
		return;
	}
	lines_print(l, "{\"lock\": \"0x%" PRIxPTR "\", \"kind\": \"%s\"", lock->address,
		lock->kind == DUMP_MUTEX ? "mutex" : "read-write lock");
	write_member(l, "name", named ? data.name : "");
	lines_print(l, ", \"offset\": %" PRIu64 ", \"holder\": %d, \"ended\": %s", named ? data.offset : 0, (int)lock->holder,
		lock->ended ? "true" : "false");
	write_member(l, "holder_name", lock->holder_name);
	lines_text(l, "}");
}

static void
write_thread(struct writing *w, const struct dump_thread *t)
{
	struct lines    *l = &w->lines;
	char             state[STATE_BYTES];
	const uintptr_t *creator;
	unsigned         n = 0;

	lines_print(l, "{\"id\": %d", (int)t->tid);
	write_member(l, "name", t->name);
	write_member(l, "state", wait_state(w->dump, t, w->symbols, state, sizeof(state)));
	if (t->since_ns > 0 && t->since_ns <= w->now_ns)
		lines_print(l, ", \"seconds\": %" PRId64, (w->now_ns - t->since_ns) / CLOCK_NS_PER_S);
	else
		lines_text(l, ", \"seconds\": null");
	lines_print(l, ", \"ours\": %s, \"truncated\": %s", t->own ? "true" : "false", t->truncated ? "true" : "false");
	write_labels(l, t->labels);
	write_lock(w, &t->lock);
	lines_text(l, ", \"frames\": ");
	write_frames(w, w->dump->pcs + t->first, t->count);
	creator = t->creator ? frames_stack(t->creator, &n) : NULL;
	lines_text(l, ", \"created_by\": ");
	write_frames(w, creator, n > 0);
	lines_text(l, "}");
}

/* Threads of deadlocks come first in a dump, by their numbers. */
static void
write_deadlocks(struct lines *l, const struct dump *d)
{
	uint32_t cycle = 0;

	lines_text(l, ", \"deadlocks\": [");
	for (size_t i = 0; i < d->count && d->threads[i].lock.cycle > 0; i++) {
		uint32_t now = d->threads[i].lock.cycle;

		lines_print(l, "%s%d", now == cycle ? ", " : cycle ? "], [" : "[", (int)d->threads[i].tid);
		cycle = now;
	}
	lines_text(l, cycle ? "]]" : "]");
}

static void
write_all(struct writing *w)
{
	struct lines *l = &w->lines;

	lines_print(l, "{\"version\": %d", FORM_VERSION);
	write_member(l, "program", program_invocation_short_name);
	lines_print(l, ", \"pid\": %d, \"time_ns\": \"%" PRId64 "\"", (int)getpid(), clock_ns(CLOCK_REALTIME));
	write_deadlocks(l, w->dump);
	lines_text(l, ", \"threads\": [");
	for (size_t i = 0; i < w->dump->count && !l->error; i++) {
		lines_text(l, i ? ",\n" : "\n");
		write_thread(w, &w->dump->threads[i]);
	}
	lines_text(l, "]}\n");
}

int
encode_dump_json(const struct dump *d, struct symbols *s, encode_write_fn *write, void *arg)
{
	struct arena_budget budget = { 0, ENCODE_MEMORY_MAX };
	struct arena        arena;
	struct writing      w = { .dump = d, .symbols = s, .now_ns = clock_ns(CLOCK_MONOTONIC) };
	int                 r;

	arena_init(&arena, &budget);
	w.frames = arena_alloc(&arena, sizeof(*w.frames));
	r = w.frames ? lines_open(&w.lines, &arena, write, arg) : -ENOMEM;
	if (!r) {
		frames_resolve_dump(d, s, &budget);
		write_all(&w);
		r = lines_close(&w.lines);
	}
	arena_release(&arena);
	return r;
}
