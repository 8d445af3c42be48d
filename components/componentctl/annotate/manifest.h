/*
 * manifest.h - a YAML text as a tree, which is changed at places and is otherwise written as it was read.
 *
 *     text ── manifest_read ──▶ nodes, each with its place ── manifest_set, manifest_insert ──▶ edits ── manifest_write ──▶ text
 *
 * What is read is never emitted again: comments, order, quotes and blank lines are the author's.
 *
 *   memory   what is in it belongs to it, until manifest_release(); zeroed before the first use
 *   faults   the first one is in .fault and .err, with the name and the line; after it nothing is found or changed
 *   source   components/componentctl/annotate/manifest.c
 */
#ifndef COMPONENTCTL_MANIFEST_H
#define COMPONENTCTL_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>

#include <component/error.h>

#include "text.h"

enum node_type { NODE_SCALAR, NODE_SEQUENCE, NODE_MAPPING, NODE_ALIAS };

struct node {
	enum node_type type;
	bool           flow;     /* [a, b] and {a: b}, and all inside */
	bool           plain;    /* a scalar without quotes and tag */
	bool           quoted;   /* a scalar in double quotes */
	bool           literal;  /* a scalar behind | or > */
	bool           anchored;
	bool           replaced; /* by an edit */
	char          *text;     /* of a scalar */
	size_t         start, end, line, column; /* bytes of the whole; line and column from 0 */
	struct node   *parent, *first, *last, *next; /* of a mapping: key, value, key, value */
	struct node   *after;    /* in the order of the text */
};

struct edit {
	size_t      at, removes;
	struct text text;
};

struct manifest {
	const char             *name; /* for messages */
	struct text             bytes;
	struct node            *root; /* its children are the documents */
	struct node            *last; /* by .after */
	struct edit            *edits;
	size_t                  edit_count;
	struct text             notes; /* lines, for who reads along */
	int                     fault;
	struct component_error *err;
};

/* 0; or a negative errno with err filled.  path "-" is standard input. */
int manifest_read(struct manifest *m, const char *path, struct component_error *err);
/* The same of a text, which it takes. */
int manifest_parse(struct manifest *m, const char *name, struct text *bytes, struct component_error *err);
void manifest_release(struct manifest *m);

/* Sets the fault: what is wrong at a node. */
void manifest_fault(struct manifest *m, const struct node *at, const char *format, ...) COMPONENT_PRINTF(3, 4);

/* A line of notes. */
void manifest_note(struct manifest *m, const char *format, ...) COMPONENT_PRINTF(2, 3);

/* Of a scalar; of all else, and of NULL, "". */
const char *manifest_text(const struct node *n);
/* The value of a key, NULL if there is none, or if it is null.  A fault: map is no mapping, a key is there twice, an
 * alias or a merge key would say what is there. */
struct node *manifest_get(struct manifest *m, struct node *map, const char *key);
/* The same along keys with dots between; "" is map itself. */
struct node *manifest_find(struct manifest *m, struct node *map, const char *path);
/* Items of a sequence; a fault if it is none, or has an alias. */
struct node *manifest_items(struct manifest *m, struct node *sequence, const char *name);

/* key: value, in a line of its own behind the value of one of these keys (with blanks between; the first that is there and
 * has room), else of another one; in place of the value that is there.  value is YAML in flow style. */
void manifest_set(struct manifest *m, struct node *map, const char *key, const char *value, const char *behind);
/* value likewise, at the end of a sequence that has items, or before the item before. */
void manifest_insert(struct manifest *m, struct node *sequence, struct node *before, const char *value);
/* Adds a scalar in flow style, in quotes where it needs them. */
void manifest_quote(struct text *t, const char *value);

/* The text with all edits; 0 or -ENOMEM. */
int manifest_write(struct manifest *m, struct text *ret);
/* Is all of the one, but for what was replaced, in the other, in the same order? */
bool manifest_is_in(const struct manifest *m, const struct manifest *other);

#endif
