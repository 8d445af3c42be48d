/*
 * touched.h - which parts of a sparse table were ever written to.
 *
 * A forked child that read all of a table to empty it would be given a page for each that
 * nobody has touched, which is a thousand page faults in the child of a daemon that forks for
 * each connection.
 *
 * What a stranger would get wrong: a part is marked before its first entry is written, and
 * stays marked: a child may come between the two.
 * Tests: tests/collect/test_stack_counts.c.
 */
#ifndef COLLECT_TOUCHED_H
#define COLLECT_TOUCHED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOUCHED_ENTRIES 65536 /* of the table */
#define TOUCHED_PART    128   /* entries */

struct touched {
	_Atomic uint64_t parts[TOUCHED_ENTRIES / TOUCHED_PART / 64];
};

static inline bool
touched_has(struct touched *t, size_t entry)
{
	size_t part = entry / TOUCHED_PART;

	return atomic_load_explicit(&t->parts[part / 64], memory_order_relaxed) >> part % 64 & 1;
}

/* The first from this one on that may have been written to, TOUCHED_ENTRIES if there is none. */
static inline size_t
touched_next(struct touched *t, size_t entry)
{
	while (entry < TOUCHED_ENTRIES && !touched_has(t, entry))
		entry = (entry / TOUCHED_PART + 1) * TOUCHED_PART;
	return entry;
}

/* Signal-safe. */
static inline void
touched_mark(struct touched *t, size_t entry)
{
	size_t part = entry / TOUCHED_PART;

	if (!touched_has(t, entry))
		atomic_fetch_or(&t->parts[part / 64], UINT64_C(1) << part % 64);
}

#endif
