/*
 * residence.c - the table of resident memory, as text and as JSON.
 *
 *     memory: 131072000 bytes resident, 402653184 mapped, 0 swapped out; allocator: glibc
 *     advice: malloc_trim() would give back 59 MB at least: ...
 *
 *        resident        %  what
 *       104857600   80.00%  heap: in use 41943040, free 62914560 (estimates of the allocator's)
 *       104857600   80.00%      main arena: in use 41943040, free 62914560
 *     ...
 *
 * Classes stand in one order, their rows by size.  The text ends a class after ROWS_SHOWN rows and
 * says what is left; JSON has all.  A mapping's row is its stack, leaf first.
 *
 * Tests: tests/memory/memory.t.
 */
#include <config.h>

#include "encode.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "frames.h"
#include "lines.h"
#include "text.h"

#define ROWS_SHOWN   32
#define FRAMES_SHOWN 8 /* functions of a stack, in the text */

struct writing {
	struct lines            lines;
	const struct residence *table;
	struct symbols         *symbols;
	struct frames          *frames;
};

/* Looks up all lines at once. */
static void
resolve(const struct residence *t, struct symbols *s, struct arena_budget *budget)
{
	struct frames_list list = { .budget = budget };
	struct table       seen;
	int                r = 0;

	table_init(&seen, budget);
	for (size_t i = 0; i < t->count && !r; i++)
		if (t->rows[i].stack)
			r = frames_list_add_stack(&list, &seen, t->rows[i].stack);
	symbols_resolve(s, list.pcs, list.count);
	frames_list_release(&list);
	table_release(&seen);
}

typedef void frame_fn(struct writing *w, const struct symbol_frame *f, unsigned nth);

static unsigned
each_frame(struct writing *w, uint32_t stack, unsigned max, frame_fn *fn)
{
	unsigned         n, nth = 0;
	const uintptr_t *pcs = frames_stack(stack, &n);

	for (unsigned i = 0; i < n && nth < max; i++) {
		frames_of(w->symbols, pcs[i], w->frames);
		for (unsigned k = 0; k < w->frames->count && nth < max; k++)
			fn(w, &w->frames->frame[k], nth++);
	}
	return nth;
}

static int64_t
free_of(const struct residence_row *row)
{
	return row->free < 0 ? 0 : row->free;
}

/* ---- text ---- */

static void
text_frame(struct writing *w, const struct symbol_frame *f, unsigned nth)
{
	lines_text(&w->lines, nth ? " < " : "");
	lines_text(&w->lines, f->name);
	if (f->file && !nth) {
		lines_text(&w->lines, " ");
		lines_text(&w->lines, f->file);
		lines_print(&w->lines, ":%d", f->line);
	}
}

static void
text_row(struct writing *w, const struct residence_row *row, bool is_class)
{
	char percent[LINES_NUMBER_MAX];

	lines_percent(percent, (int64_t)row->resident, w->table->resident);
	lines_print(&w->lines, "%12" PRIu64 "  %7s  %s", row->resident, percent, is_class ? "" : "    ");
	if (row->stack)
		each_frame(w, row->stack, FRAMES_SHOWN, text_frame);
	else
		lines_text(&w->lines, row->name);
	if (row->in_use >= 0)
		lines_print(&w->lines, ": in use %" PRId64 ", free %" PRId64 "%s", row->in_use, free_of(row),
			is_class ? " (estimates, of bytes that need not be resident)" : "");
	lines_text(&w->lines, "\n");
}

static void
text_class(struct writing *w, enum residence_class class)
{
	struct residence_row sum = residence_sum(w->table, class);
	uint64_t             rest = 0;
	size_t               shown = 0, more = 0;

	text_row(w, &sum, true);
	for (size_t i = 0; i < w->table->count; i++) {
		const struct residence_row *row = &w->table->rows[i];

		if (row->class != class)
			continue;
		if (shown < ROWS_SHOWN) {
			text_row(w, row, false);
			shown++;
		} else {
			more++;
			rest += row->resident;
		}
	}
	if (more)
		lines_print(&w->lines, "%12" PRIu64 "           %s%zu more\n", rest, "    ", more);
}

static void
text_words(struct writing *w, const char *before, const char *const *words)
{
	for (; *words; words++) {
		lines_text(&w->lines, before);
		lines_text(&w->lines, *words);
		lines_text(&w->lines, "\n");
	}
}

static void
write_text(struct writing *w)
{
	const struct residence *t = w->table;

	lines_print(&w->lines, "memory: %" PRIu64 " bytes resident, %" PRIu64 " mapped, %" PRIu64 " swapped out; ",
		t->resident, t->mapped, t->swapped);
	lines_print(&w->lines, "allocator: %s\n", *t->allocator ? t->allocator : "not known");
	text_words(w, "note: ", t->notes);
	text_words(w, "advice: ", t->advice);
	lines_text(&w->lines, "\n    resident        %  what\n");
	for (int class = 0; class < RESIDENCE_CLASSES; class++)
		text_class(w, class);
}

/* ---- JSON ---- */

static void
json_frame(struct writing *w, const struct symbol_frame *f, unsigned nth)
{
	lines_text(&w->lines, nth ? ", " : "");
	lines_json(&w->lines, f->name);
}

static void
json_numbers(struct writing *w, const struct residence_row *row)
{
	lines_print(&w->lines, ", \"resident\": %" PRIu64 ", \"mapped\": %" PRIu64, row->resident, row->mapped);
	if (row->in_use >= 0)
		lines_print(&w->lines, ", \"in_use\": %" PRId64 ", \"free\": %" PRId64, row->in_use, free_of(row));
}

static void
json_class(struct writing *w, enum residence_class class)
{
	struct residence_row sum = residence_sum(w->table, class);
	bool                 first = true;

	lines_text(&w->lines, class ? ",\n  {\"class\": " : "\n  {\"class\": ");
	lines_json(&w->lines, sum.name);
	json_numbers(w, &sum);
	lines_text(&w->lines, ", \"rows\": [");
	for (size_t i = 0; i < w->table->count; i++) {
		const struct residence_row *row = &w->table->rows[i];

		if (row->class != class)
			continue;
		lines_text(&w->lines, first ? "\n    {\"name\": " : ",\n    {\"name\": ");
		first = false;
		lines_json(&w->lines, row->name);
		json_numbers(w, row);
		if (row->stack) {
			lines_text(&w->lines, ", \"stack\": [");
			each_frame(w, row->stack, STACK_FRAMES_MAX, json_frame);
			lines_text(&w->lines, "]");
		}
		lines_text(&w->lines, "}");
	}
	lines_text(&w->lines, "]}");
}

static void
json_words(struct writing *w, const char *name, const char *const *words)
{
	bool first = true;

	lines_print(&w->lines, ",\n\"%s\": [", name);
	for (; *words; words++) {
		lines_text(&w->lines, first ? "" : ", ");
		first = false;
		lines_json(&w->lines, *words);
	}
	lines_text(&w->lines, "]");
}

static void
write_json(struct writing *w)
{
	const struct residence *t = w->table;

	lines_print(&w->lines, "{\"resident\": %" PRIu64 ", \"mapped\": %" PRIu64 ", \"swapped\": %" PRIu64,
		t->resident, t->mapped, t->swapped);
	lines_text(&w->lines, ", \"allocator\": ");
	lines_json(&w->lines, t->allocator);
	lines_print(&w->lines, ", \"left_behind\": %s", t->left_behind ? "true" : "false");
	json_words(w, "notes", t->notes);
	json_words(w, "advice", t->advice);
	lines_text(&w->lines, ",\n\"classes\": [");
	for (int class = 0; class < RESIDENCE_CLASSES; class++)
		json_class(w, class);
	lines_text(&w->lines, "]}\n");
}

/* ---- both ---- */

static int
encode(const struct residence *t, struct symbols *s, void (*body)(struct writing *w), encode_write_fn *write, void *arg)
{
	struct arena_budget budget = { 0, ENCODE_MEMORY_MAX };
	struct arena        arena;
	struct writing      w = { .table = t, .symbols = s };
	int                 r;

	arena_init(&arena, &budget);
	w.frames = arena_alloc(&arena, sizeof(*w.frames));
	r = w.frames ? lines_open(&w.lines, &arena, write, arg) : -ENOMEM;
	if (!r) {
		resolve(t, s, &budget);
		body(&w);
		r = lines_close(&w.lines);
	}
	arena_release(&arena);
	return r;
}

int
encode_residence_text(const struct residence *t, struct symbols *s, encode_write_fn *write, void *arg)
{
	return encode(t, s, write_text, write, arg);
}

int
encode_residence_json(const struct residence *t, struct symbols *s, encode_write_fn *write, void *arg)
{
	return encode(t, s, write_json, write, arg);
}
