/*
 * view.h - what of a profile a text shows: which stacks, which of its values, in which order, how many.
 *
 * As go tool pprof has it: focus keeps stacks of which a function, its file or its object is meant, and
 * ignore drops them; percentages stay those of the whole.
 *
 *   threads  any, each with a filter of its own
 *   source   profiler/encode/view.c
 */
#ifndef ENCODE_VIEW_H
#define ENCODE_VIEW_H

#include "frames.h"
#include "pattern.h"
#include "table.h"

struct view {
	char     focus[PATTERN_BYTES], ignore[PATTERN_BYTES]; /* patterns that were checked; "": none */
	bool     typed; /* type is said: */
	unsigned type;  /* which of the values */
	bool     cum;   /* sorted by cumulative values */
	size_t   rows;  /* at most; 0: as many as usual */
};

/* Which type a name or a number means, as -sample_index of pprof does: 0, or -EINVAL and a sentence's end,
 * "must be cpu or samples". */
int view_type_find(const struct profile_type *types, unsigned count, const char *text, unsigned *ret,
	char *why, size_t size);
/* The one to show, usual if none is said or the profile has no such one. */
unsigned view_type(const struct view *v, const struct profile *p, unsigned usual);

/* Stacks of one profile. */
struct view_filter {
	const struct view *view;
	struct symbols    *symbols;
	struct frames     *frames; /* overwritten */
	struct table       known;  /* what is meant of an address */
};

void view_filter_begin(struct view_filter *f, const struct view *v, struct symbols *s, struct frames *frames,
	struct arena_budget *budget);
bool view_shows(struct view_filter *f, const uintptr_t *pcs, unsigned count);
void view_filter_end(struct view_filter *f);

#endif
