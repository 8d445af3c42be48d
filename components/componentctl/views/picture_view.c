/*
 * picture_view.c - a profile as a picture of a flame graph: SVG, as a daemon answers with format=svg.
 *
 * Tests: tests/componentctl/profile.t
 */
#include <config.h>

#include "top.h"

#include <errno.h>
#include <string.h>

#include "graph.h"
#include "picture.h"
#include "text.h"

/* The number that a node's name has in the picture.  *known: one more, 0: not known yet. */
static uint32_t
name_of(const struct node *n, struct picture *picture, uint32_t *known)
{
	struct text name = TEXT_INIT;
	uint32_t    number;

	if (!*known) {
		graph_name(n, &name);
		number = name.failed ? PICTURE_NO_NAME : picture_name(picture, text_string(&name));
		*known = number == PICTURE_NO_NAME ? number : number + 1;
		text_release(&name);
	}
	return *known == PICTURE_NO_NAME ? *known : *known - 1;
}

static void
add_stack(const struct graph *g, const struct pprof_sample *s, struct picture *picture, uint32_t *names)
{
	uint32_t at = PICTURE_ROOT;

	for (uint32_t i = s->count; i-- > 0;)
		for (uint32_t k = s->stack[i]->count ? s->stack[i]->count : 1; k-- > 0;) {
			uint32_t node = g->numbers[s->stack[i] - g->shown->p->locations][k];

			picture_down_to(picture, &at, name_of(&g->nodes[node], picture, &names[node]));
		}
	picture_add(picture, at, s->values[g->shown->type]);
}

static int
draw(const struct graph *g, const char *title, struct arena *a, struct text *out)
{
	struct picture picture;
	struct lines   lines;
	uint32_t      *names = arena_array(a, (size_t)g->count + 1, sizeof(*names));
	int            r = names ? lines_open(&lines, a, text_collect, out) : -ENOMEM;

	if (r < 0)
		return r;
	r = picture_begin(&picture, a);
	for (size_t i = 0; i < g->shown->count && !r; i++)
		if (g->shown->samples[i].values[g->shown->type])
			add_stack(g, &g->shown->samples[i], &picture, names);
	if (!r)
		r = picture_write(&picture, title, g->shown->p->types[g->shown->type].unit, &lines);
	picture_end(&picture);
	return r ? r : lines_close(&lines);
}

int
picture_print(const struct pprof *p, const char *name, const struct view *v, struct text *out, struct text *notes,
	struct component_error *err)
{
	struct arena_budget budget = { 0, TOP_MEMORY_MAX };
	struct arena        arena;
	struct shown        shown;
	struct graph        graph = { .arena = &arena };
	struct text         title = TEXT_INIT;
	int                 r;

	arena_init(&arena, &budget);
	r = shown_select(&shown, p, v, &arena, notes, err);
	if (!r)
		r = graph_begin(&graph, &shown, &arena);
	if (!r) {
		text_add(&title, "%s: %s", name, p->types[shown.type].type);
		r = draw(&graph, text_string(&title), &arena, out);
	}
	text_release(&title);
	graph_release(&graph);
	arena_release(&arena);
	return r;
}
