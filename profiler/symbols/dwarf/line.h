/*
 * line.h - the line table of one unit.
 */
#ifndef SYMBOLS_DWARF_LINE_H
#define SYMBOLS_DWARF_LINE_H

#include "unit.h"

struct dwarf_file;

struct dwarf_lines {
	struct dwarf            *d;
	const struct dwarf_unit *unit;
	const char              *comp_dir; /* or NULL */
	struct dwarf_encoding    encoding; /* of the table itself */
	uint8_t                  min_length, max_ops, line_range, opcode_base;
	int8_t                   line_base;
	uint8_t                  lengths[256]; /* arguments of the standard opcodes */
	struct dwarf_cursor      program;
	struct dwarf_value      *dirs;
	struct dwarf_file       *files;
	uint32_t                 dir_count, file_count;
	char                    *buf;
};

/* root: the unit's first entry.  Memory is scratch's.  0; -ENOENT: it has none; or
 * another negative errno, and nothing is known then. */
int  dwarf_lines_open(struct dwarf_lines *l, struct dwarf *d, struct arena *scratch,
	 const struct dwarf_unit *u, const struct dwarf_entry *root);
/* Fills in file and line of wants, which are sorted by address. */
void dwarf_lines_run(struct dwarf_lines *l, struct dwarf_want *wants, size_t count);
/* The whole path of a file by its number, or NULL. */
const char *dwarf_lines_file(struct dwarf_lines *l, uint64_t number);

#endif
