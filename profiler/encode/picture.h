/*
 * picture.h - a flame graph as a picture: SVG of stacks that are handed in one after the other.
 *
 *     picture_begin(&p, &arena);
 *     at = PICTURE_ROOT;                    for each stack, its root first:
 *     picture_down(&p, &at, "main");            one call deeper
 *     picture_add(&p, at, 12);                  what was measured there
 *     picture_write(&p, "heap of daemon", "bytes", &lines);
 *     picture_end(&p);
 *
 * Who calls lies above who is called.  What takes less than a thousandth of the whole is left out, and so is what is
 * deeper than PICTURE_DEPTH: so much the picture is bounded.
 *
 *   returns  0 or -ENOMEM; picture_down() nothing: what there is no room for is counted in who calls it
 *   owns     names are copied; all memory is the arena's
 *   threads  any, one at a time for one struct picture
 *   source   profiler/encode/picture.c
 */
#ifndef ENCODE_PICTURE_H
#define ENCODE_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "lines.h"
#include "strings.h"
#include "table.h"

#define PICTURE_ROOT  0
#define PICTURE_DEPTH 200 /* frames */

struct picture_node;

struct picture {
	struct arena        *arena;
	struct strings       names;
	const char         **name; /* by number */
	size_t               name_room;
	struct picture_node *nodes;
	size_t               count, room;
	bool                 full;     /* there was no room for a call */
	struct table         children; /* by a node and a name */
};

int  picture_begin(struct picture *p, struct arena *a);
void picture_down(struct picture *p, uint32_t *at, const char *name);
/* The same for who knows a name's number, so that it is looked at once. */
#define PICTURE_NO_NAME UINT32_MAX /* there was no memory */
uint32_t picture_name(struct picture *p, const char *name);
void picture_down_to(struct picture *p, uint32_t *at, uint32_t name);
void picture_add(struct picture *p, uint32_t at, int64_t value);
int  picture_write(struct picture *p, const char *title, const char *unit, struct lines *l);
void picture_end(struct picture *p);

#endif
