/*
 * panic.c - a dump of all threads in the layout of Go's panics: goroutine?debug=2,
 * and what SIGQUIT prints.
 *
 *     goroutine 4711 [epoll_wait, thread: worker, tenant: acme]:
 *     wait_for_events(...)
 *     	/src/loop.c:88 +0x1f
 *     created by start_workers
 *     	/src/main.c:17 +0x5c
 *
 *     waits for the mutex at 0x5581c0de40a0 (accounts+0x40), held by thread 4712 "payer"
 *
 * Before them stand deadlocks: under "deadlock:" such a line for each of its threads.
 *
 * What a stranger would get wrong: readers split the words in brackets at commas and
 * end them at the first "]", so a thread's name and its labels must hold neither; an
 * inlined function has no offset of its own; what has no line reads "OBJECT:0".  A thread
 * that did not answer has a head and no frames.  Thousands of threads wait at few places:
 * the text of a stack is made once and kept, as long as there is room.
 *
 * Tests: tests/threads/goroutine.t, tests/threads/deadlock.t.
 */
#include <config.h>

#include "encode.h"

#include <errno.h>
#include <string.h>

#include "frames.h"
#include "labels.h"
#include "lines.h"
#include "table.h"
#include "utf8.h"
#include "wait_state.h"

#define STATE_BYTES 32
#define TEXTS_BYTES ((size_t)4 << 20) /* of stacks that are kept; a page is taken when it is reached */

/* Stacks as text, for other threads with the same one. */
struct texts {
	struct lines  lines; /* of the stack that is being made */
	struct lines *to;
	bool          whole; /* all of it is still in lines */
	struct table  places; /* by where in the dump's pcs a stack begins: offset and size in bytes */
	char         *bytes; /* NULL: none are kept */
	size_t        used;
};

static void
print_place(struct lines *l, const struct symbol_frame *f, bool inlined)
{
	lines_print(l, "\t");
	lines_text(l, f->file ? f->file : f->object ? f->object : "-");
	lines_print(l, ":%d", f->file ? f->line : 0);
	if (!inlined)
		lines_print(l, " +0x%llx", (unsigned long long)f->offset);
	lines_print(l, "\n");
}

static void
print_frames(struct lines *l, uintptr_t pc, struct symbols *s, struct frames *frames)
{
	frames_of(s, pc, frames);
	for (unsigned k = 0; k < frames->count; k++) {
		lines_text(l, frames->frame[k].name);
		lines_print(l, "(...)\n");
		print_place(l, &frames->frame[k], k + 1 < frames->count);
	}
}

/* A piece of a stack whose text does not fit. */
static int
text_pass(void *arg, const void *data, size_t size)
{
	struct texts *x = arg;

	x->whole = false;
	lines_bytes(x->to, data, size);
	return 0;
}

static void
text_keep(struct texts *x, uint32_t first)
{
	size_t size = x->lines.used;

	if (!x->bytes || !x->whole || size == 0 || size > TEXTS_BYTES - x->used ||
	    table_put(&x->places, first, (uint64_t)x->used << 32 | size) < 0)
		return;
	memcpy(x->bytes + x->used, x->lines.buf, size);
	x->used += size;
}

static void
print_stack(struct texts *x, const struct dump *d, const struct dump_thread *t, struct symbols *s, struct frames *frames)
{
	uint64_t place = t->count ? table_get(&x->places, t->first) : 0;

	if (place) {
		lines_bytes(x->to, x->bytes + (place >> 32), (uint32_t)place);
		return;
	}
	x->whole = true;
	for (uint32_t i = 0; i < t->count; i++)
		print_frames(&x->lines, d->pcs[t->first + i], s, frames);
	text_keep(x, t->first);
	lines_bytes(x->to, x->lines.buf, x->lines.used);
	x->lines.used = 0;
}

static void
print_word(struct lines *l, const char *from)
{
	char   word[LABELS_VALUE_MAX + 1];
	int    last = utf8_is_clean(from, strlen(from)) ? 0xff : '~';
	size_t n = 0;

	for (; *from && n < sizeof(word) - 1; from++)
		word[n++] = (unsigned char)*from < ' ' || (unsigned char)*from > last || *from == 0x7f ||
			*from == ']' || *from == ',' ? '?' : *from;
	word[n] = '\0';
	lines_text(l, word);
}

static void
print_labels(struct lines *l, uint32_t set)
{
	struct label labels[LABELS_MAX];
	unsigned     n = set ? labels_read(set, labels) : 0;

	for (unsigned i = 0; i < n; i++) {
		lines_print(l, ", ");
		print_word(l, labels[i].key);
		lines_print(l, ": ");
		print_word(l, labels[i].value);
	}
}

static void
print_lock(struct lines *l, const struct dump_lock *lock, struct symbols *s)
{
	struct symbol_data data;

	lines_print(l, "waits for the %s at 0x%llx", lock->kind == DUMP_MUTEX ? "mutex" : "read-write lock",
		(unsigned long long)lock->address);
	if (symbols_data(s, lock->address, &data)) {
		lines_print(l, " (");
		lines_text(l, data.name);
		if (data.offset)
			lines_print(l, "+0x%llx", (unsigned long long)data.offset);
		lines_print(l, ")");
	}
	if (lock->holder)
		lines_print(l, ", held by thread %d", (int)lock->holder);
	if (lock->ended)
		lines_print(l, ", which has ended");
	if (*lock->holder_name) {
		lines_print(l, " \"");
		print_word(l, lock->holder_name);
		lines_print(l, "\"");
	}
	lines_print(l, "\n");
}

/* Threads of deadlocks come first in a dump, by their numbers. */
static void
print_deadlocks(struct lines *l, const struct dump *d, struct symbols *s)
{
	uint32_t cycle = 0;

	for (size_t i = 0; i < d->count && d->threads[i].lock.cycle > 0; i++) {
		const struct dump_thread *t = &d->threads[i];

		if (t->lock.cycle != cycle)
			lines_print(l, "%sdeadlock:\n", cycle ? "\n" : "");
		cycle = t->lock.cycle;
		lines_print(l, "thread %d \"", (int)t->tid);
		print_word(l, t->name);
		lines_print(l, "\" ");
		print_lock(l, &t->lock, s);
	}
	if (cycle)
		lines_print(l, "\n");
}

static void
print_head(struct lines *l, const struct dump *d, const struct dump_thread *t, struct symbols *s)
{
	char state[STATE_BYTES];

	lines_print(l, "goroutine %d [%s", (int)t->tid, wait_state(d, t, s, state, sizeof(state)));
	if (t->minutes > 0)
		lines_print(l, ", %u minutes", t->minutes);
	if (*t->name) {
		lines_print(l, ", thread: ");
		print_word(l, t->name);
	}
	print_labels(l, t->labels);
	lines_print(l, "]:\n");
}

static void
print_creator(struct lines *l, uint32_t stack, struct symbols *s, struct frames *frames)
{
	unsigned         n;
	const uintptr_t *pcs = frames_stack(stack, &n);

	frames_of(s, pcs[0], frames);
	lines_print(l, "created by ");
	lines_text(l, frames->frame[frames->count - 1].name);
	lines_print(l, "\n");
	print_place(l, &frames->frame[frames->count - 1], false);
}

static void
print_thread(struct texts *x, const struct dump *d, const struct dump_thread *t, struct symbols *s, struct frames *frames)
{
	struct lines *l = x->to;

	print_head(l, d, t, s);
	print_stack(x, d, t, s, frames);
	if (t->count && t->truncated)
		lines_print(l, "...additional frames elided...\n");
	if (t->creator)
		print_creator(l, t->creator, s, frames);
	if (t->lock.kind != DUMP_NO_LOCK)
		print_lock(l, &t->lock, s);
}

int
encode_panic(const struct dump *d, struct symbols *s, encode_write_fn *write, void *arg)
{
	struct arena_budget budget = { 0, ENCODE_MEMORY_MAX };
	struct arena        arena;
	struct lines        lines;
	struct texts        texts = { .to = &lines };
	struct frames      *frames;
	int                 r;

	arena_init(&arena, &budget);
	table_init(&texts.places, &budget);
	frames = arena_alloc(&arena, sizeof(*frames));
	r = frames ? lines_open(&lines, &arena, write, arg) : -ENOMEM;
	if (r == 0)
		r = lines_open(&texts.lines, &arena, text_pass, &texts);
	if (r < 0)
		goto out;
	frames_resolve_dump(d, s, &budget);
	texts.bytes = arena_map(&budget, TEXTS_BYTES);
	print_deadlocks(&lines, d, s);
	for (size_t i = 0; i < d->count && !lines.error; i++) {
		if (i > 0)
			lines_print(&lines, "\n");
		print_thread(&texts, d, &d->threads[i], s, frames);
	}
	r = lines_close(&lines);
	arena_unmap(&budget, texts.bytes, TEXTS_BYTES);
out:
	table_release(&texts.places);
	arena_release(&arena);
	return r;
}
