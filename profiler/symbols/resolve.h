/*
 * resolve.h - what debug information says about addresses, kept by address.
 */
#ifndef SYMBOLS_RESOLVE_H
#define SYMBOLS_RESOLVE_H

#include "dwarf/dwarf.h"
#include "object.h"
#include "strings.h"
#include "table.h"

struct resolved {
	unsigned           count; /* at least 1; innermost first */
	struct dwarf_frame frames[];
};

struct resolver {
	struct arena  *arena;
	struct strings texts;
	struct table   pcs; /* to struct resolved */
};

/* An address inside an object. */
struct resolve_pc {
	uintptr_t pc;
	uint64_t  vaddr; /* of the ELF */
	uint32_t  object;
};

void resolver_init(struct resolver *v, struct arena *a);
void resolver_release(struct resolver *v);
/* NULL: nothing is known. */
const struct resolved *resolver_find(const struct resolver *v, uintptr_t pc);
/* pcs are all o's and different, o has been read.  0; -ENOENT: it has no debug
 * information; or a negative errno: some or all of it could not be read. */
int resolver_read(struct resolver *v, const struct object *o, const struct resolve_pc *pcs, size_t count);

#endif
