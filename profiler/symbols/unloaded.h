/*
 * unloaded.h - objects that are unloaded by now, and where a profile shows them.
 */
#ifndef SYMBOLS_UNLOADED_H
#define SYMBOLS_UNLOADED_H

#include <stdint.h>

#include "arena.h"
#include "generations.h"

struct unloaded {
	struct generation *all;      /* those that are loaded, too */
	size_t             count;    /* 0: every address is of what is there now */
	uintptr_t         *shift;    /* from its address to the one it is shown at */
	uint32_t          *mappings; /* 1 + the index in symbols.c's, 0: none */
};

/* Is there something mapped now? */
typedef bool unloaded_mapped_fn(const void *arg, uintptr_t start, uintptr_t limit);

/* 0 or -ENOMEM. */
int       unloaded_read(struct unloaded *gone, struct arena *a);
/* Sets the shifts. */
void      unloaded_place(struct unloaded *gone, unloaded_mapped_fn *mapped, const void *arg);
/* The tagged pc of an address that a profile has shown, or that is code now. */
uintptr_t unloaded_tagged(const struct unloaded *gone, uintptr_t address);

#endif
