/*
 * kinds.h - the table of profile kinds, made from profiler/kinds.def.
 */
#ifndef COLLECT_KINDS_H
#define COLLECT_KINDS_H

#include <stdbool.h>
#include <stddef.h>

#include "profile.h"

struct kind {
	const char *name;        /* "heap" */
	const char *description; /* index page, docs */
	int       (*snapshot)(struct profile *ret); /* NULL: a window or a plain route */
	size_t    (*count)(void);                   /* the index's Count column; NULL: 0 */
	bool        windowed;    /* seconds= makes a window (profile, trace) */
	/* Of the program's own profiles alone (custom.c), instead of the two above. */
	int       (*custom_snapshot)(const struct kind *k, struct profile *ret);
	size_t    (*custom_count)(const struct kind *k);
};

extern const struct kind kinds[];
extern const size_t      kind_count;
const struct kind *kind_find(const char *name);

/* Of either sort.  Snapshot: 0 or a negative errno; count: 0 where nothing is counted. */
int    kind_snapshot(const struct kind *k, struct profile *ret);
size_t kind_entries(const struct kind *k);

#endif
