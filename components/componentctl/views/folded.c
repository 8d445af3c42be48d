/*
 * folded.c - a profile as folded stacks: a line each, root first, then its value.
 *
 *     main;serve;handle_request 297
 *
 * In the order in which they come first in the file.  Functions that were inlined have a place of their own, and a
 * semicolon in a name becomes a colon.  Stacks are compared as numbers of names, and written once: a small file can
 * have a million of them, each of megabytes.
 *
 * Tests: tests/componentctl/profile.t
 */
#include <config.h>

#include "top.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "graph.h"

#define LINE_BYTES_MAX ((size_t)64 << 20) /* of one stack's names */

struct line {
	const struct pprof_sample *first; /* that has this stack */
	int64_t                    value;
};

struct folded {
	const struct graph *graph;
	struct strings      names, stacks;
	struct text        *name; /* by number */
	uint32_t           *numbers; /* of names, by node, and one more; 0: not known yet */
	struct line        *lines;
};

/* 0, or -ENOMEM. */
static int
name_number(struct folded *f, const char *text, size_t size, uint32_t *ret)
{
	uint64_t id;
	bool     is_new;
	char    *copy = arena_strndup(f->graph->arena, text, size);

	if (!copy || strings_id(&f->names, copy, size, true, &id, &is_new) < 0)
		return -ENOMEM;
	if (is_new)
		f->name[id] = (struct text){ .data = copy, .size = size };
	*ret = (uint32_t)id + 1;
	return 0;
}

static int
number_of(struct folded *f, uint32_t node)
{
	struct text name = TEXT_INIT;
	int         r;

	if (f->numbers[node])
		return 0;
	graph_name(&f->graph->nodes[node], &name);
	for (size_t i = 0; i < name.size; i++)
		if (name.data[i] == ';')
			name.data[i] = ':';
	r = name.failed ? -ENOMEM : name_number(f, name.data, name.size, &f->numbers[node]);
	text_release(&name);
	return r;
}

/* The numbers of a stack's names, root first.  0, or -ENOMEM. */
static int
numbers_of(struct folded *f, const struct pprof_sample *s, struct text *ret)
{
	const struct graph *g = f->graph;
	size_t              bytes = 0;
	int                 r = 0;

	for (uint32_t i = s->count; i-- > 0 && !r;)
		for (uint32_t k = s->stack[i]->count ? s->stack[i]->count : 1; k-- > 0 && !r;) {
			uint32_t node = g->numbers[s->stack[i] - g->shown->p->locations][k];

			r = number_of(f, node);
			if (r)
				break;
			text_add_bytes(ret, (const char *)&f->numbers[node], sizeof(*f->numbers));
			bytes += f->name[f->numbers[node] - 1].size + 1;
			if (bytes > LINE_BYTES_MAX)
				r = -ENOMEM;
		}
	if (s->count == 0) {
		/* Behind those of all nodes. */
		if (!f->numbers[g->count])
			r = name_number(f, "<unknown>", strlen("<unknown>"), &f->numbers[g->count]);
		text_add_bytes(ret, (const char *)&f->numbers[g->count], sizeof(*f->numbers));
	}
	return r || ret->failed ? -ENOMEM : 0;
}

static int
add_line(struct folded *f, const struct pprof_sample *s)
{
	struct text stack = TEXT_INIT;
	uint64_t    id;
	bool        is_new;
	int         r = numbers_of(f, s, &stack);

	if (!r)
		r = strings_id(&f->stacks, text_string(&stack), stack.size, false, &id, &is_new);
	if (!r) {
		if (is_new)
			f->lines[id].first = s;
		f->lines[id].value = (int64_t)((uint64_t)f->lines[id].value + (uint64_t)s->values[f->graph->shown->type]);
	}
	text_release(&stack);
	return r;
}

static int
print_line(struct folded *f, const struct line *line, struct text *out)
{
	struct text stack = TEXT_INIT;
	int         r = numbers_of(f, line->first, &stack);
	uint32_t    number;

	for (size_t at = 0; at < stack.size && !r; at += sizeof(number)) {
		memcpy(&number, stack.data + at, sizeof(number));
		if (at)
			text_add_bytes(out, ";", 1);
		text_add_bytes(out, f->name[number - 1].data, f->name[number - 1].size);
	}
	if (!r)
		text_add(out, " %" PRId64 "\n", line->value);
	text_release(&stack);
	return r || out->size > TOP_MEMORY_MAX ? -ENOMEM : 0;
}

static int
print(const struct graph *g, struct text *out)
{
	struct folded f = { .graph = g };
	int           r;

	f.lines = arena_array(g->arena, g->shown->count + 1, sizeof(*f.lines));
	f.name = arena_array(g->arena, (size_t)g->count + 1, sizeof(*f.name));
	f.numbers = arena_array(g->arena, (size_t)g->count + 1, sizeof(*f.numbers));
	r = f.lines && f.name && f.numbers ? 0 : -ENOMEM;
	strings_init(&f.names, g->arena);
	strings_init(&f.stacks, g->arena);
	for (size_t i = 0; i < g->shown->count && !r; i++)
		r = add_line(&f, &g->shown->samples[i]);
	for (uint64_t i = 0; i < f.stacks.count && !r; i++)
		if (f.lines[i].value)
			r = print_line(&f, &f.lines[i], out);
	strings_release(&f.names);
	strings_release(&f.stacks);
	return r;
}

int
folded_print(const struct pprof *p, const struct view *v, struct text *out, struct text *notes, struct component_error *err)
{
	struct arena_budget budget = { 0, TOP_MEMORY_MAX };
	struct arena        arena;
	struct shown        shown;
	struct graph        graph = { .arena = &arena };
	int                 r;

	arena_init(&arena, &budget);
	r = shown_select(&shown, p, v, &arena, notes, err);
	if (!r)
		r = graph_begin(&graph, &shown, &arena);
	if (!r)
		r = print(&graph, out);
	graph_release(&graph);
	arena_release(&arena);
	return r;
}
