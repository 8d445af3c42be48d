/*
 * ranges.h - where functions begin and end, of an object that does not name them all.
 */
#ifndef SYMBOLS_RANGES_H
#define SYMBOLS_RANGES_H

#include "arena.h"
#include "image.h"
#include "symtab.h"

/* From .eh_frame: a table of addresses and sizes whose names must not be asked for.
 * -ENOENT: there is none. */
int ranges_build(struct symtab *t, struct arena *a, const struct image *img);

#endif
