/*
 * maps.h - the lines of /proc/self/maps.
 */
#ifndef STACKS_MAPS_H
#define STACKS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"

struct maps_line {
	uintptr_t start, limit;
	uint64_t  offset, device, inode; /* device as makedev() makes it */
	char     *path;                  /* inside the text; "" without one */
	bool      executable, deleted;   /* " (deleted)" is cut off the path */
};

struct maps {
	struct arena_budget *budget;
	char                *text;
	size_t               size, room;
	size_t               next; /* where maps_next() goes on */
};

/* Reads the whole file at once.  0 or a negative errno. */
int  maps_read(struct maps *m, struct arena_budget *budget);
/* For tests: a copy of text. */
int  maps_copy(struct maps *m, struct arena_budget *budget, const char *text);
/* Cuts the line out of the text, so each line can be had once. */
bool maps_next(struct maps *m, struct maps_line *ret);
void maps_release(struct maps *m);

#endif
