/*
 * symtab.h - the functions of one ELF object, sorted by address.
 */
#ifndef SYMBOLS_SYMTAB_H
#define SYMBOLS_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "image.h"

#define SYMTAB_SOURCES_MAX 2                 /* .dynsym and .gnu_debugdata's .symtab */
#define SYMTAB_NAME_MAX    4096              /* bytes; the rest is cut */
#define SYMTAB_STRINGS_MAX ((size_t)8 << 20) /* bytes kept in memory; larger tables are read name by name */
#define SYMTAB_NONE        SIZE_MAX

struct symtab_entry {
	uint64_t key;  /* address << 16 | rank, the best rank first */
	uint32_t size; /* bytes of code; unsized symbols reach to their section's end */
	uint32_t name; /* source << 31 | offset of the string */
};

struct symtab_source {
	const struct image *image;
	ElfW(Shdr)          symbols, strings;
	char               *text; /* of the strings; NULL: read from the file */
	bool                verbatim; /* an '@' belongs to the name */
};

struct symtab {
	struct symtab_entry *entries;
	size_t               count;
	struct symtab_source sources[SYMTAB_SOURCES_MAX];
	unsigned             source_count;
};

/* Takes the symbols of a section type (SHT_SYMTAB, SHT_DYNSYM) of image into the
 * table to be built.  The image must live as long as the table, unless its
 * strings fitted into memory.  -ENOENT: has none. */
int symtab_add_source(struct symtab *t, struct arena *a, const struct image *image, uint32_t type);
/* code: the object as it is loaded, which knows what is code.  0, -ENOENT when
 * there is not one function, or a negative errno. */
int symtab_build(struct symtab *t, struct arena *a, const struct image *code);
/* A table of these entries, which need no order; they are used as room to work in. */
int symtab_take(struct symtab *t, struct arena *a, struct symtab_entry *entries, size_t count);
/* Index of the function around an ELF address, or SYMTAB_NONE. */
size_t symtab_find(const struct symtab *t, uint64_t vaddr);
static inline uint64_t
symtab_address(const struct symtab *t, size_t i)
{
	return t->entries[i].key >> 16;
}
/* As it stands in the file, without a version; a copy in the arena, clean
 * UTF-8.  NULL when it cannot be read. */
const char *symtab_name(const struct symtab *t, size_t i, struct arena *a);
/* The name of the data object around an ELF address, of the first source, whose strings must fit into
 * memory; likewise.  NULL: there is none. */
const char *symtab_data(const struct symtab *t, uint64_t vaddr, struct arena *a, uint64_t *ret_offset);
/* Whether anything still has to be read from the source's image. */
bool symtab_needs_image(const struct symtab *t, unsigned source);

#endif
