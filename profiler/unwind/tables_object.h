/*
 * tables_object.h - the unwind rows of one loaded object.
 *
 * They are made by the builder alone, under the lock of tables.c, and read without one.
 */
#ifndef UNWIND_TABLES_OBJECT_H
#define UNWIND_TABLES_OBJECT_H

#include <stddef.h>
#include <stdint.h>

#include "maps.h"
#include "memory.h"
#include "tables.h"

#define TABLES_PAGE_SHIFT 8 /* one index entry for 256 bytes of code */

struct tables_row {
	uint32_t pc;   /* from the object's start */
	uint32_t code; /* tables_lookup.h */
};

/* A section of an object, for as long as it is read: one room for all of a build. */
struct tables_copy {
	void  *bytes;
	size_t size;
};

struct tables_copies {
	struct tables_copy header, frames;
	size_t             left; /* bytes of sections that may be read */
};

/* The executable range of one object; never changes once made. */
struct tables_object {
	struct tables_section at;
	uint64_t        device, inode, identity;
	unsigned        users; /* generations */
	uint32_t        count;
	const struct tables_row *rows;
	const uint32_t          *pages; /* [i]: how many rows start at or before byte i << TABLES_PAGE_SHIFT */
	size_t          bad, frames_bytes, map_bytes;
	struct tables_copy made;     /* the header, if the object has none with a search table */
};

/*
 * The object whose ELF header is at base, of which line is executable; known again, with
 * one user more, if it still is that one.  mem: how it is read.
 *
 * 0, or -ENOENT: it has code, and nobody can tell where its unwind tables are, or they are more
 * than copies->left; or another negative errno: it is no object, or has no tables that can be used
 */
int tables_object_make(const struct memory *mem, struct tables_object *known, uintptr_t base, const struct maps_line *line,
		       struct tables_copies *copies, struct tables_object **ret);
void  tables_copy_release(struct tables_copy *c);
void  tables_object_release(struct tables_object *o);

#endif
