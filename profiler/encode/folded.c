/*
 * folded.c - a profile as "folded" stacks: a line each, root first, then its value.
 *
 *     main;serve;handle_request;epoll_wait 297
 *
 * What flame graph scripts, speedscope and many a shell line read.  Functions that were
 * inlined have a place of their own.  The value is the number of samples where the
 * profile counts those, as Go's fgprof has it; else that of the default type, and for
 * want of one the last.
 *
 * What a stranger would get wrong: stacks that differ in their addresses or lines alone
 * have one text.  They are one line, in the place of the first: a stack is known by the
 * numbers of its names.  Where memory for all lines is wanting, what there is is written
 * and forgotten, and a text may come twice.
 *
 * Tests: tests/encode/test_text.c, tests/encode/test_view.c, tests/wall/fgprof.t.
 */
#include <config.h>

#include "encode.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "frames.h"
#include "lines.h"
#include "order.h"
#include "strings.h"
#include "view.h"

#define NAMES_MAX (STACK_FRAMES_MAX * SYMBOLS_FRAMES_MAX) /* of one stack */

struct row {
	const uint32_t *names; /* root first */
	size_t          count;
	int64_t         value;
};

struct folded {
	struct arena   *arena; /* of one table of lines */
	struct strings  names, stacks;
	const char    **name; /* by number */
	struct row    **row;
	size_t          name_room, row_room;
	size_t          rows_left; /* to be written */
	uint32_t        stack[NAMES_MAX];
};

/* A semicolon in a name would be another function. */
static void
print_name(struct lines *l, const char *name)
{
	size_t n;

	for (; *name; name += n) {
		n = strcspn(name, ";");
		lines_print(l, "%.*s", (int)(n < 256 ? n : 256), name);
		if (n > 256)
			n = 256;
		else if (name[n])
			lines_print(l, ":"), n++;
	}
}

static bool
before(const void *arg, uint32_t a, uint32_t b)
{
	const struct row *const *row = arg;

	if (row[a]->value != row[b]->value)
		return lines_amount(row[a]->value) > lines_amount(row[b]->value);
	return a < b;
}

/* Where not all fit, the largest. */
static void
rows_print(struct lines *l, struct folded *f)
{
	const uint32_t *order = NULL;

	if (f->rows_left < f->stacks.count)
		order = order_of(f->arena, f->stacks.count, before, f->row);
	for (size_t i = 0; i < f->stacks.count && f->rows_left; i++, f->rows_left--) {
		const struct row *row = f->row[order ? order[i] : i];

		for (size_t k = 0; k < row->count; k++) {
			print_name(l, f->name[row->names[k]]);
			lines_print(l, k + 1 < row->count ? ";" : " ");
		}
		lines_print(l, "%" PRId64 "\n", row->value);
	}
}

static void
folded_begin(struct folded *f)
{
	strings_init(&f->names, f->arena);
	strings_init(&f->stacks, f->arena);
	f->name = NULL;
	f->row = NULL;
	f->name_room = f->row_room = 0;
}

static void
folded_end(struct folded *f)
{
	strings_release(&f->names);
	strings_release(&f->stacks);
	arena_release(f->arena);
}

static int
name_id(struct folded *f, const char *text, uint32_t *ret)
{
	void    *room = arena_grown(f->arena, f->name, &f->name_room, f->names.count, sizeof(*f->name));
	uint64_t id;
	bool     is_new;
	size_t   size = strlen(text);

	if (!room)
		return -ENOMEM;
	f->name = room;
	/* The name in frames is overwritten by the next one, if it is but an address. */
	if (strings_id(&f->names, text, size, false, &id, &is_new) < 0)
		return -ENOMEM;
	if (is_new) {
		f->name[id] = arena_strndup(f->arena, text, size);
		if (!f->name[id])
			return -ENOMEM;
	}
	*ret = (uint32_t)id;
	return 0;
}

static int
row_add(struct folded *f, size_t count, int64_t value)
{
	void       *room = arena_grown(f->arena, f->row, &f->row_room, f->stacks.count, sizeof(*f->row));
	struct row *row = arena_alloc(f->arena, sizeof(*row));
	uint32_t   *names = arena_array(f->arena, count, sizeof(*names));
	uint64_t    id;
	bool        is_new;

	if (!room || !row || !names)
		return -ENOMEM;
	f->row = room;
	memcpy(names, f->stack, count * sizeof(*names));
	if (strings_id(&f->stacks, (const char *)names, count * sizeof(*names), true, &id, &is_new) < 0)
		return -ENOMEM;
	if (is_new) {
		*row = (struct row){ names, count, 0 };
		f->row[id] = row;
	}
	f->row[id]->value += value;
	return 0;
}

static int
stack_add(struct folded *f, const uintptr_t *pcs, unsigned count, int64_t value, struct symbols *s,
	  struct frames *frames)
{
	size_t n = 0;

	if (!value)
		return 0;
	while (count-- > 0) {
		frames_of(s, pcs[count], frames);
		for (unsigned k = frames->count; k-- > 0 && n < NAMES_MAX;)
			if (name_id(f, frames->frame[k].name, &f->stack[n++]) < 0)
				return -ENOMEM;
	}
	return row_add(f, n, value);
}

/* With a table of its own if this one is full. */
static int
stack_put(struct lines *l, struct folded *f, const uintptr_t *pcs, unsigned count, int64_t value, struct symbols *s,
	  struct frames *frames)
{
	int r = stack_add(f, pcs, count, value, s, frames);

	if (r < 0 && f->stacks.count > 0) {
		rows_print(l, f);
		folded_end(f);
		folded_begin(f);
		r = stack_add(f, pcs, count, value, s, frames);
	}
	return r;
}

int
encode_folded(const struct profile *p, const struct view *v, struct symbols *s, encode_write_fn *write, void *arg)
{
	struct arena_budget   budget = { 0, ENCODE_MEMORY_MAX };
	struct arena          arena, table;
	struct lines          lines;
	struct folded        *f;
	struct frames        *frames;
	struct profile_sample lost;
	struct view_filter    filter;
	unsigned              type, n;
	int                   r;

	if (!p->type_count || p->type_count > PROFILE_TYPES_MAX)
		return -EINVAL;
	type = view_type(v, p, strcmp(p->types[0].type, "samples") ? frames_type(p) : 0);
	arena_init(&arena, &budget);
	arena_init(&table, &budget);
	frames = arena_alloc(&arena, sizeof(*frames));
	f = arena_alloc(&arena, sizeof(*f));
	r = frames && f ? lines_open(&lines, &arena, write, arg) : -ENOMEM;
	if (r < 0)
		goto out;
	f->arena = &table;
	f->rows_left = v->rows ? v->rows : SIZE_MAX;
	folded_begin(f);
	view_filter_begin(&filter, v, s, frames, &budget);
	frames_resolve(p, s);
	for (size_t i = 0; i < p->count && !r && !lines.error; i++) {
		const uintptr_t *pcs = frames_stack(p->samples[i].stack, &n);

		if (view_shows(&filter, pcs, n))
			r = stack_put(&lines, f, pcs, n, p->samples[i].values[type], s, frames);
	}
	if (!r && frames_lost(p, &lost) && view_shows(&filter, frames_lost_stack, 1))
		r = stack_put(&lines, f, frames_lost_stack, 1, lost.values[type], s, frames);
	if (!r)
		rows_print(&lines, f);
	view_filter_end(&filter);
	folded_end(f);
	if (lines_close(&lines) < 0 && !r)
		r = lines.error;
out:
	arena_release(&arena);
	return r;
}
