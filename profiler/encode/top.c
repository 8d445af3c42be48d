/*
 * top.c - a table of the functions that count most, for people with nothing but curl.
 *
 *     profile: cpu, total 2.03s, duration 5s
 *           flat   flat%         cum    cum%  function
 *          1.20s  59.11%       1.20s  59.11%  crunch
 *
 * flat is what was measured in the function itself, cum also in what it called.  A
 * function that is on a stack several times counts once for it, or recursion would
 * come to more than everything.
 *
 * Functions are their names, so two static ones of one name share a row, as they do
 * in pprof.  Percentages are of the sum of all amounts without their sign, as in
 * pprof, so that a difference of two profiles has sensible ones too.
 *
 * Tests: tests/encode/test_text.c, tests/encode/test_view.c
 */
#include <config.h>

#include "encode.h"

#include <errno.h>
#include <string.h>

#include "frames.h"
#include "lines.h"
#include "order.h"
#include "strings.h"
#include "table.h"
#include "view.h"

#define ROWS_MAX 80 /* lines of the table, if nobody says how many; the rest is counted */

struct row {
	const char *name;
	int64_t     flat, cum;
	size_t      last; /* the number of the last sample counted in cum, from 1 */
};

/* The rows of an address, innermost first. */
struct address {
	unsigned count;
	uint32_t rows[];
};

struct top {
	const struct profile *profile;
	const struct view    *view;
	struct symbols       *symbols;
	unsigned              type;
	struct arena         *arena;
	struct strings        names;
	struct table          addresses; /* pc to struct address */
	struct row           *rows;
	size_t                room;
	uint64_t              total, shown;
	struct frames         frames;
};

/* The row of a name; rows grow with the number of names. */
static int
row_of(struct top *t, const char *name, uint32_t *ret)
{
	uint64_t id;
	bool     is_new;
	int      r = strings_id(&t->names, name, strlen(name), name != t->frames.text, &id, &is_new);

	if (r < 0)
		return r;
	if (id == t->room) {
		size_t      room = t->room ? t->room * 2 : 1024;
		struct row *rows = id < UINT32_MAX / 2 ? arena_map(t->arena->budget, room * sizeof(*rows)) : NULL;

		if (!rows)
			return -ENOMEM;
		if (t->room)
			memcpy(rows, t->rows, t->room * sizeof(*rows));
		arena_unmap(t->arena->budget, t->rows, t->room * sizeof(*rows));
		t->rows = rows;
		t->room = room;
	}
	if (is_new) {
		t->rows[id].name = name;
		if (name == t->frames.text)
			t->rows[id].name = arena_strndup(t->arena, name, strlen(name));
		if (!t->rows[id].name)
			return -ENOMEM;
	}
	*ret = (uint32_t)id;
	return 0;
}

static int
address_of(struct top *t, uintptr_t pc, const struct address **ret)
{
	struct address *a = (struct address *)(uintptr_t)table_get(&t->addresses, pc);
	int             r = 0;

	if (!a) {
		frames_of(t->symbols, pc, &t->frames);
		a = arena_alloc(t->arena, sizeof(*a) + t->frames.count * sizeof(a->rows[0]));
		if (!a)
			return -ENOMEM;
		a->count = t->frames.count;
		for (unsigned i = 0; i < a->count && !r; i++)
			r = row_of(t, t->frames.frame[i].name, &a->rows[i]);
		if (!r)
			r = table_put(&t->addresses, pc, (uintptr_t)a);
	}
	*ret = a;
	return r;
}

static int
add(struct top *t, const uintptr_t *pcs, unsigned count, int64_t value, size_t number)
{
	const struct address *a;

	if (!value)
		return 0;
	t->shown += lines_amount(value);
	for (unsigned i = 0; i < count; i++) {
		int r = address_of(t, pcs[i], &a);

		if (r < 0)
			return r;
		if (!i)
			t->rows[a->rows[0]].flat += value;
		for (unsigned k = 0; k < a->count; k++) {
			struct row *row = &t->rows[a->rows[k]];

			if (row->last != number)
				row->cum += value;
			row->last = number;
		}
	}
	return 0;
}

static int
add_all(struct top *t)
{
	const struct profile *p = t->profile;
	struct view_filter    filter;
	struct profile_sample lost;
	int                   r = 0;

	view_filter_begin(&filter, t->view, t->symbols, &t->frames, t->arena->budget);
	for (size_t i = 0; i < p->count && !r; i++) {
		unsigned         n;
		const uintptr_t *pcs = frames_stack(p->samples[i].stack, &n);

		t->total += lines_amount(p->samples[i].values[t->type]);
		if (view_shows(&filter, pcs, n))
			r = add(t, pcs, n, p->samples[i].values[t->type], i + 1);
	}
	if (!r && frames_lost(p, &lost)) {
		t->total += lines_amount(lost.values[t->type]);
		if (view_shows(&filter, frames_lost_stack, 1))
			r = add(t, frames_lost_stack, 1, lost.values[t->type], p->count + 1);
	}
	view_filter_end(&filter);
	return r;
}

static bool
before(const void *arg, uint32_t a, uint32_t b)
{
	const struct row *x = (const struct row *)arg + a, *y = (const struct row *)arg + b;

	if (lines_amount(x->flat) != lines_amount(y->flat))
		return lines_amount(x->flat) > lines_amount(y->flat);
	if (lines_amount(x->cum) != lines_amount(y->cum))
		return lines_amount(x->cum) > lines_amount(y->cum);
	return strcmp(x->name, y->name) < 0;
}

static bool
before_by_cum(const void *arg, uint32_t a, uint32_t b)
{
	const struct row *x = (const struct row *)arg + a, *y = (const struct row *)arg + b;

	if (lines_amount(x->cum) != lines_amount(y->cum))
		return lines_amount(x->cum) > lines_amount(y->cum);
	return before(arg, a, b);
}

static void
print_head(struct lines *l, const struct top *t)
{
	const struct profile *p = t->profile;
	char                  total[LINES_NUMBER_MAX], shown[LINES_NUMBER_MAX], duration[LINES_NUMBER_MAX];

	lines_value(total, (int64_t)t->total, p->types[t->type].unit);
	lines_print(l, "%s: %s, total %s", p->name, p->types[t->type].type, total);
	if (*t->view->focus || *t->view->ignore) {
		lines_value(shown, (int64_t)t->shown, p->types[t->type].unit);
		lines_print(l, ", shown %s", shown);
	}
	if (p->duration_ns) {
		lines_value(duration, p->duration_ns, "nanoseconds");
		lines_print(l, ", duration %s", duration);
	}
	lines_print(l, "\n%10s %7s  %10s %7s  %s\n", "flat", "flat%", "cum", "cum%", "function");
}

static void
print_row(struct lines *l, const struct top *t, const struct row *row)
{
	const char *unit = t->profile->types[t->type].unit;
	char        flat[LINES_NUMBER_MAX], flat_part[LINES_NUMBER_MAX];
	char        cum[LINES_NUMBER_MAX], cum_part[LINES_NUMBER_MAX];

	lines_value(flat, row->flat, unit);
	lines_value(cum, row->cum, unit);
	lines_percent(flat_part, row->flat, t->total);
	lines_percent(cum_part, row->cum, t->total);
	lines_print(l, "%10s %7s  %10s %7s  ", flat, flat_part, cum, cum_part);
	lines_text(l, row->name);
	lines_print(l, "\n");
}

static int
print(struct top *t, encode_write_fn *write, void *arg)
{
	size_t       count = (size_t)t->names.count;
	size_t       rows = t->view->rows ? t->view->rows : ROWS_MAX;
	uint32_t    *order = order_of(t->arena, count, t->view->cum ? before_by_cum : before, t->rows);
	struct lines lines;
	int          r = order ? lines_open(&lines, t->arena, write, arg) : -ENOMEM;

	if (r < 0)
		return r;
	print_head(&lines, t);
	for (size_t i = 0; i < count && i < rows; i++)
		print_row(&lines, t, &t->rows[order[i]]);
	if (count > rows)
		lines_print(&lines, "%zu of %zu functions left out\n", count - rows, count);
	return lines_close(&lines);
}

int
encode_top(const struct profile *p, const struct view *v, struct symbols *s, encode_write_fn *write, void *arg)
{
	struct arena_budget budget = { 0, ENCODE_MEMORY_MAX };
	struct arena        arena;
	struct top         *t;
	int                 r;

	if (!p->type_count || p->type_count > PROFILE_TYPES_MAX)
		return -EINVAL;
	arena_init(&arena, &budget);
	t = arena_alloc(&arena, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->profile = p;
	t->view = v;
	t->symbols = s;
	t->type = view_type(v, p, frames_type(p));
	t->arena = &arena;
	strings_init(&t->names, t->arena);
	table_init(&t->addresses, t->arena->budget);
	frames_resolve(p, s);
	r = add_all(t);
	if (!r)
		r = print(t, write, arg);
	strings_release(&t->names);
	table_release(&t->addresses);
	arena_unmap(t->arena->budget, t->rows, t->room * sizeof(*t->rows));
	arena_release(&arena);
	return r;
}
