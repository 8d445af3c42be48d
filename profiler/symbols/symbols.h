/*
 * symbols.h - names for addresses, from the ELF files of this process, or of the one looked at (process.h).
 *
 * A struct symbols is one request's view: the executable mappings of now, those of
 * the past that stacks may run through (a pc here has its tag, generations.h), and
 * tables read from the files on demand, in memory of its own (mmap, capped).
 * Takes no loader lock and does not enter malloc.  Not from a hook or a handler.  Who starts profiling
 * prepares: debugdata_prepare(), program_file_hold().
 *
 *   threads  one at a time for one object; any number of objects
 *   stack    fits a thread of 256 KiB
 *   fork     the child must not use an object of its parent
 *   source   profiler/symbols/symbols.c
 */
#ifndef SYMBOLS_SYMBOLS_H
#define SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOLS_FRAMES_MAX 32 /* inlined frames of one address */

#define SYMBOLS_DATA_MAX 64   /* addresses of data that one request has names for */

struct symbols;

/* All strings here are clean: UTF-8 without control characters. */
struct symbol_mapping {
	uintptr_t   start, limit; /* of the executable mapping */
	uint64_t    offset;       /* in the file */
	const char *path;         /* " (deleted)" stripped; "[vdso]" */
	const char *build_id;     /* lower-case hex or "" */
	bool        gone;         /* unloaded by now; at synthetic addresses if others took its */
};

struct symbol_frame {
	const char *name;        /* never empty: "object+0x1234" without a symbol, where its
				  * function begins, if the file tells, or the address */
	const char *system_name; /* mangled, or the same */
	const char *file;        /* NULL while unknown */
	int         line;        /* 0 while unknown */
	int         start_line;  /* where the function begins, or 0 */
	uint64_t    offset;      /* of the address in the function; 0 without a symbol */
	const char *object;      /* path of its mapping, or NULL */
	bool        named;       /* by a symbol, not by its place */
};

/* What an address of data lies in. */
struct symbol_data {
	const char *name; /* "accounts" */
	uint64_t    offset;
};

/* limit_bytes: what its tables may take; an object whose table does not fit has no
 * names, which symbols_unread() counts.  Where neither /proc/self/maps nor the loader's list
 * can be had (no descriptors left) there are no mappings.  0 or -ENOMEM. */
int    symbols_open(size_t limit_bytes, struct symbols **ret);
/* A view of another process, perhaps of another machine and long ago: of mappings that do not overlap, sorted, one per
 * line of its /proc/PID/maps.  Files are opened by their paths, regular ones alone, and are taken for those that were
 * mapped unless their build ids differ; a name that is no path is an object without a file.  Copies what it keeps. */
int    symbols_open_places(size_t limit_bytes, const struct symbol_mapping *places, size_t count, struct symbols **ret);
/* Keeps answers from one request to the next, in at most a sixteenth of limit_bytes; 0:
 * nothing, and gives all of it back. */
void   symbols_keep(size_t limit_bytes);
/* Gives all of it back; NULL is fine. */
void   symbols_close(struct symbols *s);
size_t symbols_mapping_count(const struct symbols *s);
/* 0 is the main binary; sorted by address from 1 on; those that are gone come last. */
const struct symbol_mapping *symbols_mapping(const struct symbols *s, size_t i);
int    symbols_mapping_find(const struct symbols *s, uintptr_t pc); /* -1: none */
/* Where a profile shows it: the address, or a synthetic one of a mapping that is gone. */
uintptr_t symbols_address(const struct symbols *s, uintptr_t pc);
/* And back; an address that nobody has shown is one of now. */
uintptr_t symbols_pc(const struct symbols *s, uintptr_t address);
/* Looks up the lines of all addresses and what was inlined there, in one go: each file
 * is read once, in its order.  Addresses that nobody has asked for here have a name
 * and no line.  As far as memory goes: see symbols_unlined(). */
void symbols_resolve(struct symbols *s, const uintptr_t *pcs, size_t count);
/* Innermost inlined frame first; returns how many, at least 1 inside a mapping,
 * 0 outside of all.  Strings live until symbols_close(). */
unsigned symbols_frames(struct symbols *s, uintptr_t pc, struct symbol_frame *frames, unsigned max);
/* The static object there; false: there is none, it has no name, or so many others were asked for. */
bool     symbols_data(struct symbols *s, uintptr_t address, struct symbol_data *ret);
/* Objects whose names were asked for and that have a table which could not be
 * read: not the mapped file any more, not to be opened, broken, or over the limit.  Where the
 * file cannot be had, what is exported has a name all the same. */
unsigned symbols_unread(const struct symbols *s);
/* Objects that have debug information of which some could not be read: broken,
 * packed in an unknown way, or over the limit. */
unsigned symbols_unlined(const struct symbols *s);

#endif
