/*
 * graph.h - functions, what was measured in each and in what it called, and who calls whom.
 *
 *   source   components/componentctl/views/graph.c
 */
#ifndef COMPONENTCTL_GRAPH_H
#define COMPONENTCTL_GRAPH_H

#include "shown.h"
#include "strings.h"
#include "table.h"

/* A row of the table: a function's name; for those without one, what is known else. */
struct node {
	const char *name, *object;
	int64_t     start_line;
	int64_t     flat, cum;
	size_t      last; /* the number of the last sample counted in cum, from 1 */
	bool        kept; /* shown; the flat value of others is nobody's */
	bool        is_inlined, is_called; /* by some caller that is kept */
};

struct edge {
	int64_t  weight;
	size_t   last;
	uint32_t from, to;
	bool     inlined; /* wherever it was met */
};

struct graph {
	struct arena       *arena;
	const struct shown *shown;
	struct strings      keys;
	struct node        *nodes;
	uint32_t            count, room;
	uint32_t          **numbers; /* of nodes, by location, by function */
	struct table        edge_of; /* caller and called, to edge's number + 1 */
	struct edge        *edges;
	size_t              edge_count, edge_room;
};

/* All nodes, kept, with values.  0 or -ENOMEM; to be released either way. */
int  graph_begin(struct graph *g, const struct shown *shown, struct arena *a);
/* Counts again what is kept. */
int  graph_count(struct graph *g);
/* Keeps no node below that; how many that makes go. */
uint32_t graph_drop_below(struct graph *g, int64_t cutoff);
/* Says of each node how it is called, by edges of at least that weight; others go.  Once, at the end. */
void graph_calls(struct graph *g, int64_t cutoff);
bool graph_has(const struct node *n);
/* "main", "[libc.so.6]", "<unknown>" */
void graph_name(const struct node *n, struct text *out);
/* The last part of a path. */
void graph_object(const char *path, struct text *out);
void graph_release(struct graph *g);

/* Without the sign. */
static inline uint64_t
amount(int64_t v)
{
	return v < 0 ? -(uint64_t)v : (uint64_t)v;
}

#endif
