/*
 * graph.c - functions, what was measured in each and in what it called, and who calls whom.
 *
 * A function that is on a stack several times counts once for it.  Functions are their names; those that have none
 * are told apart by object and line, as pprof does.  Edges serve one purpose: to say whether a function was inlined
 * into all of its callers that are shown, or into some.
 *
 * What a stranger would get wrong: a stack whose leaf is not kept adds to no flat value, and its other functions
 * are called from the nearest one that is kept.
 *
 * Tests: tests/componentctl/profile.t
 */
#include <config.h>

#include "graph.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

/* An array in a mapping of its own, twice as large. */
static void *
doubled(struct graph *g, void *old, size_t room, size_t size, size_t *ret_room)
{
	size_t more = room ? room * 2 : 1024;
	void  *new = arena_map(g->arena->budget, more * size);

	if (!new)
		return NULL;
	if (room)
		memcpy(new, old, room * size);
	arena_unmap(g->arena->budget, old, room * size);
	*ret_room = more;
	return new;
}

static int
node_of(struct graph *g, const char *key, size_t key_size, const struct node *n, uint32_t *ret)
{
	uint64_t id;
	bool     is_new;
	size_t   room = g->room;
	int      r = strings_id(&g->keys, key, key_size, false, &id, &is_new);

	if (r < 0)
		return r;
	if (id == g->room) {
		struct node *nodes = id < UINT32_MAX / 2 ? doubled(g, g->nodes, g->room, sizeof(*nodes), &room) : NULL;

		if (!nodes)
			return -ENOMEM;
		g->nodes = nodes;
		g->room = (uint32_t)room;
	}
	if (is_new) {
		g->nodes[id] = *n;
		g->nodes[id].kept = true;
		g->count = (uint32_t)id + 1;
	}
	*ret = (uint32_t)id;
	return 0;
}

static int
node_of_function(struct graph *g, const struct pprof_location *l, const struct pprof_function *f, uint32_t *ret)
{
	struct text key = TEXT_INIT;
	int         r;

	if (f && *f->name)
		return node_of(g, f->name, strlen(f->name), &(struct node){ .name = f->name, .object = "" }, ret);
	/* No name begins with a NUL. */
	text_add_bytes(&key, "", 1);
	text_add(&key, "%" PRId64 " %s", f ? f->start_line : 0, l->object);
	r = key.failed ? -ENOMEM : node_of(g, key.data, key.size,
		&(struct node){ .name = "", .object = l->object, .start_line = f ? f->start_line : 0 }, ret);
	text_release(&key);
	return r;
}

static int
number(struct graph *g)
{
	const struct pprof *p = g->shown->p;

	g->numbers = arena_array(g->arena, p->location_count + 1, sizeof(*g->numbers));
	if (!g->numbers)
		return -ENOMEM;
	for (size_t i = 0; i < p->location_count; i++) {
		const struct pprof_location *l = &p->locations[i];
		uint32_t                     count = l->count ? l->count : 1;

		g->numbers[i] = arena_array(g->arena, count, sizeof(uint32_t));
		if (!g->numbers[i])
			return -ENOMEM;
		for (uint32_t k = 0; k < count; k++) {
			int r = node_of_function(g, l, l->count ? l->functions[k] : NULL, &g->numbers[i][k]);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int
add_call(struct graph *g, uint32_t from, uint32_t to, int64_t value, size_t sample, bool inlined)
{
	uint64_t     key = (uint64_t)from << 32 | to, index = table_get(&g->edge_of, key);
	struct edge *e;

	if (!index) {
		if (g->edge_count == g->edge_room) {
			struct edge *edges = doubled(g, g->edges, g->edge_room, sizeof(*edges), &g->edge_room);

			if (!edges)
				return -ENOMEM;
			g->edges = edges;
		}
		index = ++g->edge_count;
		if (table_put(&g->edge_of, key, index) < 0)
			return -ENOMEM;
		g->edges[index - 1] = (struct edge){ .from = from, .to = to, .inlined = true };
	}
	e = &g->edges[index - 1];
	if (e->last == sample)
		return 0;
	e->last = sample;
	e->weight = (int64_t)((uint64_t)e->weight + (uint64_t)value);
	e->inlined = e->inlined && inlined;
	return 0;
}

static int
count_sample(struct graph *g, const struct pprof_sample *s, size_t sample)
{
	int64_t  value = s->values[g->shown->type];
	uint32_t caller = UINT32_MAX;
	bool     left_out = false;

	for (uint32_t i = s->count; i-- > 0;) {
		const struct pprof_location *l = s->stack[i];
		uint32_t                     count = l->count ? l->count : 1;

		for (uint32_t k = count; k-- > 0;) {
			uint32_t     id = g->numbers[l - g->shown->p->locations][k];
			struct node *n = &g->nodes[id];

			left_out = !n->kept;
			if (left_out)
				continue;
			if (n->last != sample)
				n->cum = (int64_t)((uint64_t)n->cum + (uint64_t)value);
			n->last = sample;
			if (caller != UINT32_MAX && caller != id && add_call(g, caller, id, value, sample, k != count - 1) < 0)
				return -ENOMEM;
			caller = id;
		}
	}
	if (caller != UINT32_MAX && !left_out)
		g->nodes[caller].flat = (int64_t)((uint64_t)g->nodes[caller].flat + (uint64_t)value);
	return 0;
}

int
graph_count(struct graph *g)
{
	int r = 0;

	table_release(&g->edge_of);
	table_init(&g->edge_of, g->arena->budget);
	g->edge_count = 0;
	for (uint32_t i = 0; i < g->count; i++) {
		g->nodes[i].flat = g->nodes[i].cum = 0;
		g->nodes[i].last = 0;
	}
	for (size_t i = 0; i < g->shown->count && !r; i++)
		if (g->shown->samples[i].values[g->shown->type])
			r = count_sample(g, &g->shown->samples[i], i + 1);
	return r;
}

int
graph_begin(struct graph *g, const struct shown *shown, struct arena *a)
{
	int r;

	*g = (struct graph){ .arena = a, .shown = shown };
	strings_init(&g->keys, a);
	table_init(&g->edge_of, a->budget);
	r = number(g);
	return r < 0 ? r : graph_count(g);
}

bool
graph_has(const struct node *n)
{
	return n->kept && (n->cum || n->flat);
}

uint32_t
graph_drop_below(struct graph *g, int64_t cutoff)
{
	uint32_t dropped = 0;

	for (uint32_t i = 0; i < g->count; i++) {
		struct node *n = &g->nodes[i];
		bool         stays = graph_has(n) && amount(n->cum) >= (uint64_t)cutoff;

		dropped += graph_has(n) && !stays;
		n->kept = stays;
	}
	return dropped;
}

void
graph_calls(struct graph *g, int64_t cutoff)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->edge_count; i++) {
		const struct edge *e = &g->edges[i];

		/* As pprof, which asks the callers of what it shows, and nobody's of what adds up to nothing. */
		if (amount(e->weight) < (uint64_t)cutoff && graph_has(&g->nodes[e->to]))
			continue;
		if (e->inlined)
			g->nodes[e->to].is_inlined = true;
		else
			g->nodes[e->to].is_called = true;
		g->edges[kept++] = *e;
	}
	g->edge_count = kept;
}

void
graph_object(const char *path, struct text *out)
{
	size_t end = strlen(path), begin, before = out->size;

	while (end > 1 && path[end - 1] == '/')
		end--;
	for (begin = end; begin && path[begin - 1] != '/';)
		begin--;
	begin -= begin && begin == end; /* of slashes alone one is the name */
	text_add_bytes(out, path + begin, end - begin);
	if (!out->failed && out->size)
		utf8_mask(out->data + before, out->size - before);
}

void
graph_name(const struct node *n, struct text *out)
{
	if (*n->name) {
		text_add_visible(out, n->name, strlen(n->name));
	} else if (*n->object) {
		text_add(out, "[");
		graph_object(n->object, out);
		text_add(out, "]");
	} else {
		text_add(out, "<unknown>");
	}
}

void
graph_release(struct graph *g)
{
	arena_unmap(g->arena->budget, g->nodes, g->room * sizeof(*g->nodes));
	arena_unmap(g->arena->budget, g->edges, g->edge_room * sizeof(*g->edges));
	table_release(&g->edge_of);
	strings_release(&g->keys);
}
