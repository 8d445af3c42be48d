/*
 * top.c - the table of go tool pprof -top: the same rows, figures, units, rounding and order.
 *
 *     Type: cpu
 *     Duration: 10.02s, Total samples = 9.53s (95.11%)
 *     Showing nodes accounting for 9.41s, 98.74% of 9.53s total
 *     Dropped 12 nodes (cum <= 0.05s)
 *     Showing top 10 nodes out of 24
 *           flat  flat%   sum%        cum   cum%
 *          4.10s 43.02% 43.02%      4.10s 43.02%  crunch
 *
 * What a stranger would get wrong: functions of which less than half a percent of what is shown is theirs are
 * dropped, also without a limit of rows.  One unit is chosen for the whole column: see unit_of().  Sorted by flat,
 * rows of the same flat value are in the order of their names, not of cum.
 *
 * With --tree and --peek each row is between those who call the function and those that it calls.
 *
 * Tests: tests/componentctl/profile.t, views.t, against every go tool pprof that is here.
 */
#include <config.h>

#include "top.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "graph.h"
#include "order.h"
#include "units.h"
#include "utf8.h"

/* Shares of what is shown below which functions are dropped, and calls do not say how a function was called. */
#define NODE_SHARE 0.005
#define EDGE_SHARE 0.001

#define FILTER_MAX 80 /* bytes of an active filter that are shown */
#define SEPARATOR "----------------------------------------------------------+-------------\n"

struct table_of_functions {
	const struct pprof *p;
	const struct view  *view;
	struct arena       *arena;
	struct shown        shown;
	struct graph        graph;
	uint32_t           *order;   /* the rows' nodes */
	size_t              count, whole_count; /* rows, and those there would be without a limit */
	uint32_t            dropped; /* for their small values */
	char                unit[UNITS_MAX];
	struct match        peek;
	uint32_t           *calls[2]; /* of a tree: the edges, by whom they call and by who calls */
	struct text        *out;
};

static void
add_amount(struct table_of_functions *t, int columns, int64_t value)
{
	char text[UNITS_MAX];

	units_format(text, value, t->p->types[t->shown.type].unit, t->unit);
	text_add(t->out, "%*s", columns, text);
}

static void
add_share(struct table_of_functions *t, int64_t value, int64_t of, bool trimmed)
{
	char share[UNITS_MAX];

	units_percent(share, value, of);
	text_add(t->out, "%s", trimmed ? share + strspn(share, " ") : share);
}

/* Nodes of one name differ in what the name does not say. */
static bool
before_by_rest(const struct node *x, const struct node *y)
{
	char a[24], b[24];
	int  r;

	snprintf(a, sizeof(a), "%" PRId64, x->start_line);
	snprintf(b, sizeof(b), "%" PRId64, y->start_line);
	r = strcmp(a, b);
	return r ? r < 0 : strcmp(x->object, y->object) < 0;
}

static int
compare_names(const struct node *x, const struct node *y)
{
	struct text a = TEXT_INIT, b = TEXT_INIT;
	int         r;

	if (*x->name && *y->name)
		return strcmp(x->name, y->name);
	graph_name(x, &a);
	graph_name(y, &b);
	r = strcmp(text_string(&a), text_string(&b));
	text_release(&a);
	text_release(&b);
	return r;
}

static bool
before(const void *arg, uint32_t a, uint32_t b)
{
	const struct table_of_functions *t = arg;
	const struct node               *x = &t->graph.nodes[a], *y = &t->graph.nodes[b];
	int64_t first_x = t->view->cum ? x->cum : x->flat, first_y = t->view->cum ? y->cum : y->flat;
	int64_t then_x = t->view->cum ? x->flat : x->cum, then_y = t->view->cum ? y->flat : y->cum;
	int     names;

	if (amount(first_x) != amount(first_y))
		return amount(first_x) > amount(first_y);
	names = compare_names(x, y);
	if (names)
		return names < 0;
	return amount(then_x) != amount(then_y) ? amount(then_x) > amount(then_y) : before_by_rest(x, y);
}

/* The nodes that are there, in the order of the table. */
static void
sort(struct table_of_functions *t)
{
	t->count = 0;
	for (uint32_t i = 0; i < t->graph.count; i++)
		if (graph_has(&t->graph.nodes[i]))
			t->order[t->count++] = i;
	order_sort(t->order, t->count, before, t);
}

static int
limit(struct table_of_functions *t)
{
	int r;

	t->whole_count = t->count;
	if (!t->view->rows || (uint64_t)t->view->rows >= t->count)
		return 0;
	/* Nor those whose values add up to nothing, which no row shows. */
	for (uint32_t i = 0; i < t->graph.count; i++)
		t->graph.nodes[i].kept = graph_has(&t->graph.nodes[i]);
	for (size_t i = (size_t)t->view->rows; i < t->count; i++)
		t->graph.nodes[t->order[i]].kept = false;
	r = graph_count(&t->graph);
	if (!r)
		sort(t);
	return r;
}

/* The best for the smallest value of the rows, or for a hundred times that where the total has a larger one. */
static void
choose_unit(struct table_of_functions *t)
{
	const char *unit = t->p->types[t->shown.type].unit, *of_min, *of_max;
	uint64_t    min = 0, max = (uint64_t)t->shown.total;

	snprintf(t->unit, sizeof(t->unit), "auto");
	if (!t->count)
		return;
	for (size_t i = 0; i < t->count; i++) {
		const struct node *n = &t->graph.nodes[t->order[i]];
		uint64_t           least = amount(n->flat ? n->flat : n->cum);

		if (least && (!min || least < min))
			min = least;
	}
	min = min ? min : max;
	of_min = units_best((int64_t)min, unit);
	of_max = units_best((int64_t)max, unit);
	if (strcmp(of_min, of_max) && (int64_t)(min * 100) < (int64_t)max)
		of_min = units_best((int64_t)(min * 100), unit);
	snprintf(t->unit, sizeof(t->unit), "%s", *of_min ? of_min : unit);
}

static int
build(struct table_of_functions *t)
{
	int64_t  total = 0;
	uint64_t node_cutoff, edge_cutoff;
	int      r = graph_begin(&t->graph, &t->shown, t->arena);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < t->graph.count; i++)
		total = (int64_t)((uint64_t)total + (uint64_t)t->graph.nodes[i].flat);
	node_cutoff = t->peek.usable ? 0 : amount((int64_t)((double)total * NODE_SHARE));
	edge_cutoff = t->peek.usable ? 0 : amount((int64_t)((double)total * EDGE_SHARE));
	if (node_cutoff)
		t->dropped = graph_drop_below(&t->graph, (int64_t)node_cutoff);
	if (t->dropped)
		r = graph_count(&t->graph);
	t->order = arena_array(t->arena, (size_t)t->graph.count + 1, sizeof(*t->order));
	if (r < 0 || !t->order)
		return -ENOMEM;
	sort(t);
	r = limit(t);
	if (r < 0)
		return r;
	graph_calls(&t->graph, (int64_t)edge_cutoff);
	choose_unit(t);
	return 0;
}

static void
print_file(struct table_of_functions *t)
{
	if (*t->p->object) {
		text_add(t->out, "File: ");
		graph_object(t->p->object, t->out);
		text_add(t->out, "\n");
	}
	if (*t->p->build_id) {
		text_add(t->out, "Build ID: ");
		text_add_visible(t->out, t->p->build_id, strlen(t->p->build_id));
		text_add(t->out, "\n");
	}
	for (size_t i = 0; i < t->p->comment_count; i++)
		if (t->p->comments[i][0] != '#') {
			text_add_visible(t->out, t->p->comments[i], strlen(t->p->comments[i]));
			text_add(t->out, "\n");
		}
}

static void
print_time(struct table_of_functions *t)
{
	time_t    seconds = t->p->time_ns / 1000000000;
	struct tm local;
	char      text[80];

	if (t->p->time_ns > 0 && localtime_r(&seconds, &local) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &local))
		text_add(t->out, "Time: %s\n", text);
}

static void
print_duration(struct table_of_functions *t)
{
	const char *unit = t->p->types[t->shown.type].unit;
	char        duration[UNITS_MAX], total[UNITS_MAX];
	double      ns;

	if (!t->p->duration_ns)
		return;
	units_format(duration, t->p->duration_ns, "nanoseconds", "auto");
	text_add(t->out, "Duration: %s, Total samples = ", duration);
	add_amount(t, 0, t->shown.total);
	text_add(t->out, " ");
	ns = units_nanoseconds(t->shown.total, unit);
	if (ns != 0) {
		/* More nanoseconds than there are numbers: 292 years. */
		units_percent(total, fabs(ns) < 0x1p63 ? (int64_t)ns : INT64_MAX, t->p->duration_ns);
		text_add(t->out, "(%s)", total);
	}
	text_add(t->out, "\n");
}

static void
print_filter(struct table_of_functions *t, const char *name, const char *value)
{
	struct text filter = TEXT_INIT;
	bool        is_cut;

	if (!value || !*value)
		return;
	text_add(&filter, "%s=%s", name, value);
	is_cut = !filter.failed && filter.size > FILTER_MAX;
	if (is_cut)
		filter.data[utf8_cut(filter.data, FILTER_MAX)] = '\0';
	text_add(t->out, "   ");
	text_add_visible(t->out, text_string(&filter), FILTER_MAX);
	text_add(t->out, "%s\n", is_cut ? "…" : "");
	text_release(&filter);
}

static void
print_head(struct table_of_functions *t)
{
	const struct view *v = t->view;
	int64_t            sum = 0;

	if (!v->brief)
		print_file(t);
	if (*t->p->types[t->shown.type].type) {
		text_add(t->out, "Type: ");
		text_add_visible(t->out, t->p->types[t->shown.type].type, TEXT_QUOTED_MAX);
		text_add(t->out, "\n");
	}
	if (!v->brief)
		print_time(t);
	print_duration(t);
	if ((v->focus && *v->focus) || (v->ignore && *v->ignore))
		text_add(t->out, "Active filters:\n");
	print_filter(t, "focus", v->focus);
	print_filter(t, "ignore", v->ignore);
	for (size_t i = 0; i < t->count; i++)
		sum = (int64_t)((uint64_t)sum + (uint64_t)t->graph.nodes[t->order[i]].flat);
	text_add(t->out, "Showing nodes accounting for ");
	add_amount(t, 0, sum);
	text_add(t->out, ", ");
	add_share(t, sum, t->shown.total, true);
	text_add(t->out, " of ");
	add_amount(t, 0, t->shown.total);
	text_add(t->out, " total\n");
	if (t->shown.total && t->dropped) {
		text_add(t->out, "Dropped %" PRIu32 " node%s (cum <= ", t->dropped, t->dropped > 1 ? "s" : "");
		add_amount(t, 0, (int64_t)((double)t->shown.total * NODE_SHARE));
		text_add(t->out, ")\n");
	}
	if (t->shown.total && t->view->rows > 0 && (uint64_t)t->view->rows < t->whole_count)
		text_add(t->out, "Showing top %" PRId64 " nodes out of %zu\n", t->view->rows, t->whole_count);
}

static void
print_figures(struct table_of_functions *t, const struct node *n, int64_t sum)
{
	add_amount(t, 10, n->flat);
	text_add(t->out, " ");
	add_share(t, n->flat, t->shown.total, false);
	text_add(t->out, " ");
	add_share(t, sum, t->shown.total, false);
	text_add(t->out, " ");
	add_amount(t, 10, n->cum);
	text_add(t->out, " ");
	add_share(t, n->cum, t->shown.total, false);
}

static void
print_table(struct table_of_functions *t)
{
	int64_t sum = 0;

	text_add(t->out, "%10s %5s%% %5s%% %10s %5s%%\n", "flat", "flat", "sum", "cum", "cum");
	for (size_t i = 0; i < t->count && t->out->size <= TOP_MEMORY_MAX; i++) {
		const struct node *n = &t->graph.nodes[t->order[i]];

		sum = (int64_t)((uint64_t)sum + (uint64_t)n->flat);
		print_figures(t, n, sum);
		text_add(t->out, "  ");
		graph_name(n, t->out);
		text_add(t->out, "%s\n", !n->is_inlined ? "" : n->is_called ? " (partial-inline)" : " (inline)");
	}
}

static bool
edge_before(const struct table_of_functions *t, const struct edge *x, const struct edge *y)
{
	int names;

	if (amount(x->weight) != amount(y->weight))
		return amount(x->weight) > amount(y->weight);
	names = compare_names(&t->graph.nodes[x->from], &t->graph.nodes[y->from]);
	if (!names)
		names = compare_names(&t->graph.nodes[x->to], &t->graph.nodes[y->to]);
	return names ? names < 0 : x->from != y->from ? x->from < y->from : x->to < y->to;
}

static bool
before_by_called(const void *arg, uint32_t a, uint32_t b)
{
	const struct table_of_functions *t = arg;
	const struct edge               *x = &t->graph.edges[a], *y = &t->graph.edges[b];

	return x->to != y->to ? x->to < y->to : edge_before(t, x, y);
}

static bool
before_by_caller(const void *arg, uint32_t a, uint32_t b)
{
	const struct table_of_functions *t = arg;
	const struct edge               *x = &t->graph.edges[a], *y = &t->graph.edges[b];

	return x->from != y->from ? x->from < y->from : edge_before(t, x, y);
}

/* The node on one side of an edge: 0: called, 1: the caller. */
static uint32_t
side_of(const struct table_of_functions *t, uint32_t edge, int side)
{
	return side ? t->graph.edges[edge].from : t->graph.edges[edge].to;
}

/* Of the edges that a node is on that side of: the other side's nodes. */
static void
print_calls(struct table_of_functions *t, uint32_t node, int side)
{
	size_t low = 0, high = t->graph.edge_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (side_of(t, t->calls[side][middle], side) < node)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < t->graph.edge_count && side_of(t, t->calls[side][low], side) == node && t->out->size <= TOP_MEMORY_MAX; low++) {
		const struct edge *e = &t->graph.edges[t->calls[side][low]];

		add_amount(t, 50, e->weight);
		text_add(t->out, " ");
		add_share(t, e->weight, t->graph.nodes[node].cum, false);
		text_add(t->out, " |   ");
		graph_name(&t->graph.nodes[side_of(t, t->calls[side][low], !side)], t->out);
		text_add(t->out, "%s\n", e->inlined ? " (inline)" : "");
	}
}

static bool
is_peeked(const struct table_of_functions *t, const struct node *n)
{
	struct text name = TEXT_INIT;
	bool        found;

	if (!t->peek.usable)
		return true;
	graph_name(n, &name);
	found = match_finds(&t->peek, text_string(&name));
	text_release(&name);
	return found;
}

static int
print_tree(struct table_of_functions *t, struct component_error *err)
{
	int64_t sum = 0;
	bool    found = false;

	t->calls[0] = order_of(t->arena, t->graph.edge_count, before_by_called, t);
	t->calls[1] = order_of(t->arena, t->graph.edge_count, before_by_caller, t);
	if (t->graph.edge_count && (!t->calls[0] || !t->calls[1]))
		return -ENOMEM;
	text_add(t->out, SEPARATOR "      flat  flat%%   sum%%        cum   cum%%   calls calls%% + context \t \t \n");
	for (size_t i = 0; i < t->count && t->out->size <= TOP_MEMORY_MAX; i++) {
		const struct node *n = &t->graph.nodes[t->order[i]];

		if (!is_peeked(t, n))
			continue;
		found = true;
		sum = (int64_t)((uint64_t)sum + (uint64_t)n->flat);
		text_add(t->out, SEPARATOR);
		print_calls(t, t->order[i], 0);
		print_figures(t, n, sum);
		text_add(t->out, "                | ");
		graph_name(n, t->out);
		text_add(t->out, "\n");
		print_calls(t, t->order[i], 1);
	}
	text_add(t->out, "%s", t->count ? SEPARATOR : "");
	if (found || !t->peek.usable)
		return 0;
	component_error_set(err, "--peek '%.80s' is no function of this profile; 'componentctl profile FILE --top=0' shows all",
		t->view->peek);
	return -ENOENT;
}

int
top_printed(const struct text *out, struct component_error *err)
{
	if (out->size <= TOP_MEMORY_MAX)
		return 0;
	component_error_set(err, "more than %zu MiB would be printed; write --top=N or --focus=RE", (size_t)TOP_MEMORY_MAX >> 20);
	return -E2BIG;
}

int
top_print(const struct pprof *p, const struct view *v, struct text *out, struct text *notes, struct component_error *err)
{
	struct arena_budget       budget = { 0, TOP_MEMORY_MAX };
	struct arena              arena;
	struct table_of_functions t = { .p = p, .view = v, .arena = &arena, .out = out, .peek = MATCH_INIT };
	struct view               all = *v;
	int                       r;

	all.rows = 0;
	arena_init(&arena, &budget);
	t.graph.arena = &arena;
	r = shown_select(&t.shown, p, v, &arena, notes, err);
	if (!r)
		r = shown_compile(&t.peek, "--peek", v->peek, err);
	if (t.peek.usable)
		t.view = &all;
	if (!r)
		r = build(&t);
	if (!r) {
		print_head(&t);
		if (v->tree || t.peek.usable)
			r = print_tree(&t, err);
		else
			print_table(&t);
	}
	if (!r)
		r = top_printed(out, err);
	match_release(&t.peek);
	graph_release(&t.graph);
	arena_release(&arena);
	return r;
}
