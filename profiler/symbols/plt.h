/*
 * plt.h - names for the stubs through which an object calls others: "write@plt".
 */
#ifndef SYMBOLS_PLT_H
#define SYMBOLS_PLT_H

#include "arena.h"
#include "image.h"
#include "symtab.h"

/* One of them, in its section; slot: where its jump finds the address. */
struct plt_stub {
	size_t   begin, size;
	uint64_t slot;
};

/* A table of their own, complete in memory.  -ENOENT: has none that we know. */
int plt_build(struct symtab *t, struct arena *a, const struct image *img);

#endif
