/*
 * tables_parts.h - what the files of the tables share: one object's rows, the palette
 * of rules, memory.  Builder only, under the lock of tables.c, but for reading rules.
 */
#ifndef UNWIND_TABLES_PARTS_H
#define UNWIND_TABLES_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cfi.h"
#include "maps.h"
#include "memory.h"

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
	uintptr_t       header_base; /* what the numbers in header's search table count from */
	struct tables_copy made;     /* the header, if the object has none with a search table */
};

/* ---- tables_object.c ---- */

/*
 * The object whose ELF header is at base, of which line is executable; known again, with
 * one user more, if it still is that one.  mem: how it is read.
 *
 * 0, or -ENOENT: it has code, and nobody can tell where its unwind tables are; or another
 * negative errno: it is no object, or has no tables that can be used
 */
int tables_object_make(const struct memory *mem, struct tables_object *known, uintptr_t base, const struct maps_line *line,
		       struct tables_copies *copies, struct tables_object **ret);
void  tables_copy_release(struct tables_copy *c);
void  tables_object_release(struct tables_object *o);

/* ---- tables_sections.c ---- */

/* Where an object's unwind sections are in memory. */
struct tables_sections {
	uintptr_t base, bias;
	uintptr_t header, frames; /* frames 0: memory does not tell */
	size_t    header_size, frames_size, code_size;
	bool      is_page; /* there is no search table: header is the object's first page instead */
};

/* By the program headers of the object at base; false: it is no object. */
bool tables_sections_find(const struct memory *mem, uintptr_t base, struct tables_sections *ret);
/* By the section headers of its file; line is one of its mappings.  False: there is no file
 * that is surely the one which is mapped, or no .eh_frame in it. */
bool tables_sections_ask_file(const struct memory *mem, struct tables_sections *s, const struct maps_line *line);
/* What .eh_frame_hdr should have been, its numbers counted from frames->address.  0 or a
 * negative errno. */
int  tables_search_make(const struct cfi_section *frames, struct tables_copy *ret);

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
