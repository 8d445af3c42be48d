/*
 * plt.h - names for the stubs through which an object calls others: "write@plt".
 */
#ifndef SYMBOLS_PLT_H
#define SYMBOLS_PLT_H

#include "arena.h"
#include "image.h"
#include "symtab.h"

/* A table of their own, complete in memory.  -ENOENT: has none that we know. */
int plt_build(struct symtab *t, struct arena *a, const struct image *img);

#endif
