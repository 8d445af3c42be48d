/*
 * folded.c - a profile as folded stacks: a line each, root first, then its value.
 *
 *     main;serve;handle_request 297
 *
 * In the order in which they come first in the file.  Functions that were inlined have a place of their own, and a
 * semicolon in a name becomes a colon.
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
	const char *text;
	int64_t     value;
};

static void
add_name(struct text *out, const struct node *n)
{
	size_t from = out->size;

	graph_name(n, out);
	for (size_t i = from; i < out->size; i++)
		if (out->data[i] == ';')
			out->data[i] = ':';
}

static int
add_line(const struct graph *g, const struct pprof_sample *s, struct strings *stacks, struct line *lines)
{
	struct text stack = TEXT_INIT;
	uint64_t    id = 0;
	bool        is_new = false;
	int         r = 0;

	for (uint32_t i = s->count; i-- > 0 && stack.size < LINE_BYTES_MAX;)
		for (uint32_t k = s->stack[i]->count ? s->stack[i]->count : 1; k-- > 0 && stack.size < LINE_BYTES_MAX;) {
			if (stack.size)
				text_add(&stack, ";");
			add_name(&stack, &g->nodes[g->numbers[s->stack[i] - g->shown->p->locations][k]]);
		}
	if (s->count == 0)
		text_add(&stack, "<unknown>");
	if (stack.failed || stack.size >= LINE_BYTES_MAX)
		r = -ENOMEM;
	else if (stack.size)
		r = strings_id(stacks, stack.data, stack.size, false, &id, &is_new);
	if (!r && stack.size) {
		if (is_new)
			lines[id].text = arena_strndup(g->arena, stack.data, stack.size);
		if (!lines[id].text)
			r = -ENOMEM;
		lines[id].value = (int64_t)((uint64_t)lines[id].value + (uint64_t)s->values[g->shown->type]);
	}
	text_release(&stack);
	return r;
}

static int
print(const struct graph *g, struct text *out)
{
	struct strings stacks;
	struct line   *lines = arena_array(g->arena, g->shown->count + 1, sizeof(*lines));
	int            r = lines ? 0 : -ENOMEM;

	strings_init(&stacks, g->arena);
	for (size_t i = 0; i < g->shown->count && !r; i++)
		r = add_line(g, &g->shown->samples[i], &stacks, lines);
	for (uint64_t i = 0; i < stacks.count && !r; i++)
		if (lines[i].value) {
			text_add_bytes(out, lines[i].text, strlen(lines[i].text));
			text_add(out, " %" PRId64 "\n", lines[i].value);
		}
	strings_release(&stacks);
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
