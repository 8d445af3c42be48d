/*
 * sources.h - where the names and lines of an object come from, for who asks why there are none.
 *
 *   threads  one at a time for one struct symbols
 *   source   profiler/symbols/sources.c
 */
#ifndef SYMBOLS_SOURCES_H
#define SYMBOLS_SOURCES_H

#include <stddef.h>

#include "build_id.h"
#include "symbols.h"

enum sources {
	SOURCES_SYMTAB = 1,        /* .symtab: all names */
	SOURCES_PACKED = 2,        /* .gnu_debugdata: the names that .dynsym lacks */
	SOURCES_EXPORTED = 4,      /* .dynsym: names of what is exported */
	SOURCES_LINES = 8,         /* .debug_info */
	SOURCES_APART_SYMTAB = 16, /* the same in the file that is split off for debuggers */
	SOURCES_APART_LINES = 32,
	SOURCES_NO_FILE = 64,      /* its file cannot be had, and nothing else is known */
};
#define SOURCES_ALL_NAMES (SOURCES_SYMTAB | SOURCES_PACKED | SOURCES_APART_SYMTAB)

/* Of a mapping; 0: there is nothing. */
unsigned sources_of_mapping(struct symbols *s, size_t i);
/* Of a file, and its build id or "". */
unsigned sources_of_file(const char *path, char build_id[BUILD_ID_MAX]);

#endif
