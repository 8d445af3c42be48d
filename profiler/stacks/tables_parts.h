/*
 * tables_parts.h - what the files of the tables share: one object's rows, the palette
 * of rules, memory.  Builder only, under the lock of tables.c, but for reading rules.
 */
#ifndef STACKS_TABLES_PARTS_H
#define STACKS_TABLES_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cfi.h"
#include "maps.h"

#define TABLES_PAGE_SHIFT 8 /* one index entry for 256 bytes of code */

struct tables_row {
	uint32_t pc;   /* from the object's start */
	uint32_t code; /* tables_lookup.h */
};

/* The executable range of one object; never changes once made. */
struct tables_object {
	uintptr_t       start, end;
	uint64_t        device, inode, identity;
	unsigned        users; /* generations */
	uint32_t        count;
	const struct tables_row *rows;
	const uint32_t          *pages; /* [i]: how many rows start at or before byte i << TABLES_PAGE_SHIFT */
	size_t          bad, frames_bytes, map_bytes;
	uintptr_t       header, frames; /* where its sections are */
	size_t          header_size, frames_size;
};

/* A section of an object, for as long as it is read: one room for all of a build. */
struct tables_copy {
	void  *bytes;
	size_t size;
};

struct tables_copies {
	struct tables_copy header, frames;
};

/* ---- tables_object.c ---- */

/* The object whose ELF header is at base, of which line is executable; known again, with
 * one user more, if it still is that one.  NULL: no table can be had of it.  mem is
 * /proc/self/mem. */
struct tables_object *tables_object_make(int mem, struct tables_object *known, uintptr_t base,
					 const struct maps_line *line, struct tables_copies *copies);
void                  tables_copy_release(struct tables_copy *c);
void                  tables_object_release(struct tables_object *o);
/* Zeroed pages, NULL when there are none. */
void *tables_map(size_t size);

/* ---- tables_palette.c ---- */

/* Mixes more bytes in. */
#define TABLES_HASH_START 0xcbf29ce484222325ULL
uint64_t tables_hash(uint64_t h, const void *data, size_t size);

int      tables_palette_start(void);
void     tables_palette_drop(void);
/* The code of rules that are not plain (tables_lookup.h); 0 when all 65,535 rows are taken. */
uint32_t tables_palette_add(const struct cfi_row *row, const struct cfi_section *frames);
size_t   tables_palette_count(void);
size_t   tables_palette_bytes(void);
/* Signal-safe, for numbers that stand in some object's rules. */
const struct cfi_row *tables_palette_row(uint16_t rule);

#endif
