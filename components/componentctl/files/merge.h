/*
 * merge.h - several profiles as one, as go tool pprof adds and subtracts them.
 *
 *     struct merge_source sources[] = { { &now, 1 }, { &before, -1 } };
 *
 *     merge_profiles(sources, 2, &difference, &err);
 *     read_drop_frames(&difference);
 *
 * Samples of one stack and the same labels become one, whichever file they are from; what adds up to nothing goes.
 * Types that not all of them have are left out.  The result refers to texts of the sources: release them after it.
 * They are as read_profile() left them: read_drop_frames() comes after the merge.
 *
 *   limits   READ_MEMORY_MAX for the result, MERGE_TYPES_MAX
 *   threads  one at a time
 *   source   components/componentctl/files/merge.c
 */
#ifndef COMPONENTCTL_MERGE_H
#define COMPONENTCTL_MERGE_H

#include "read.h"

#define MERGE_TYPES_MAX 1000 /* each is looked up in all; real files have four */

struct merge_source {
	const struct pprof *p;
	int                 sign;    /* 1, or -1: its values are subtracted */
	bool                is_base; /* shares are of its total, as with -diff_base */
};

/* 0; -EBADMSG: they have no type in common, or in other units, or too many, -ENOMEM: and err is a sentence.  ret is to be
 * released then, too. */
int merge_profiles(const struct merge_source *sources, size_t count, struct pprof *ret, struct component_error *err);

#endif
