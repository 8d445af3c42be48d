/*
 * tables.h - unwind rules of every loaded object, ready to be looked up anywhere.
 *
 * tables_build() reads what is mapped now and swaps the result in; readers, signal
 * handlers among them, take no lock, allocate nothing and are never waited on.
 */
#ifndef UNWIND_TABLES_H
#define UNWIND_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cfi.h"

#define TABLES_PATH_MAX 256 /* bytes of a path that is shown; the rest is cut */

struct tables; /* one generation */

struct tables_stats {
	size_t objects, rows, bad, bytes, frames_bytes; /* frames_bytes: .eh_frame and its header */
	size_t rules;
	size_t limbo; /* generations that a reader which is stuck keeps */
	size_t without; /* objects with code, whose tables nobody can find; the first of them: */
	char   without_path[TABLES_PATH_MAX];
};

/*
 * tables_build - read all mapped objects, swap the new tables in
 *
 * Objects that are still the ones they were keep their tables.  Reads memory through
 * /proc/self/mem, so that an object unloaded meanwhile costs its rows and nothing else.
 *
 *   returns  0, or a negative errno with the old tables in place; -EBUSY: a reader that is stuck
 *            keeps too many of them
 *   threads  any; one builds, others wait
 *   signals  not from a handler
 */
int  tables_build(void);
/* The same without any object's rows: only where code is, for walks by frame pointers. */
int  tables_build_ranges(void);
/* One more executable mapping is known from now on.  0 or a negative errno; -EBUSY: a reader is
 * stuck, and what room there is left is for objects.  Both of the above answer that, too. */
int  tables_add_range(uintptr_t start, uintptr_t limit);
/* Has the last build, or an addition since, seen this address in an executable mapping? */
bool tables_has_code(uintptr_t pc);
/* Have objects come or gone since the last build?  Cheap; no loader lock. */
bool tables_stale(void);
void tables_stats(struct tables_stats *ret);
/* Where the object of a pc has its code, .eh_frame_hdr (or what was made instead of it) and
 * .eh_frame; false: it has none. */
struct tables_section {
	uintptr_t start, end, header, frames;
	size_t    header_size, frames_size;
	uintptr_t header_base; /* what the numbers in header's search table count from */
};
bool tables_section_of(uintptr_t pc, struct tables_section *ret);
/* Another number after each build. */
unsigned tables_generation(void);
/* In a forked child: no reader is under way, but for one that its thread was in when a handler forked. */
void tables_forked(void);
/* Tests: gives everything back. */
void tables_drop(void);

/* Brackets a walk; NULL when nothing was built.  Signal-safe; not nested by one walk. */
struct tables_reader {
	const struct tables *tables;
	uint16_t             slot, phase;
	uint32_t             forks;
};
const struct tables *tables_enter(struct tables_reader *r);
void                 tables_leave(struct tables_reader *r);
/* Where the rules of a pc begin to hold; 0 where nothing is known. */
uintptr_t             tables_row_begin(const struct tables *t, uintptr_t pc);
const uint8_t        *tables_expression(const struct cfi_rule *rule);

#endif
