/*
 * function.h - the functions around addresses, and those inlined there.
 */
#ifndef SYMBOLS_DWARF_FUNCTION_H
#define SYMBOLS_DWARF_FUNCTION_H

#include "unit.h"

struct dwarf_function {
	const struct dwarf_function *caller; /* the function it was inlined into, or NULL */
	uint64_t                     entry;  /* whose name it has, in .debug_info */
	bool                         alt;    /* of the supplementary file */
	uint32_t                     call_file, call_line;
};

struct dwarf_name {
	const char *name; /* or NULL */
	bool        linkage;
	uint32_t    start_line;
};

/* Fills in function of wants, which are sorted by address.  Memory is scratch's.  0
 * or a negative errno; what was found is there in any case. */
int dwarf_functions_find(struct dwarf *d, struct arena *scratch, struct dwarf_unit *u,
	struct dwarf_want *wants, size_t count);
/* names: from entries to struct dwarf_name in a, kept by the caller.  NULL without
 * memory. */
const struct dwarf_name *dwarf_function_name(struct dwarf *d, struct arena *a, struct table *names,
	const struct dwarf_function *f);

#endif
