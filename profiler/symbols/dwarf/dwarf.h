/*
 * dwarf.h - lines and inlined functions of many addresses of one object at once.
 */
#ifndef SYMBOLS_DWARF_H
#define SYMBOLS_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "image.h"
#include "strings.h"

struct dwarf_function;

/* An address to look up.  The caller fills in the first two. */
struct dwarf_want {
	uint64_t vaddr;
	size_t   id;       /* the caller's */
	uint64_t span;     /* bytes of the range that function has around it */
	const struct dwarf_function *function; /* the innermost, or NULL */
	uint32_t unit;     /* 1 + index of its unit; 0: none */
	uint32_t file, line;
	bool     has_line;
};

/* Strings are the texts' and live as long. */
struct dwarf_frame {
	const char *name; /* or NULL */
	bool        linkage; /* it is the one that a linker sees */
	const char *file; /* or NULL */
	uint32_t    line, start_line; /* 0: unknown */
};

/* Called once for each address of which something is known, innermost first.
 * Nonzero ends the reading and is returned. */
typedef int dwarf_found_fn(void *arg, size_t id, const struct dwarf_frame *frames, unsigned count);

struct dwarf_files {
	const struct image *debug; /* where .debug_info is */
	const struct image *alt;   /* of dwz; or NULL */
	const struct image *code;  /* the object as it is loaded */
};

/* Sorts wants.  Memory for the time of the call is taken from budget; what is found
 * is kept by texts.  0; -ENOMEM: some did not fit; -EFBIG: took too many steps; or
 * another negative errno.  What could be had was told, even then. */
int dwarf_lookup(const struct dwarf_files *files, struct arena_budget *budget, struct strings *texts,
	struct dwarf_want *wants, size_t count, dwarf_found_fn *found, void *arg);

#endif
