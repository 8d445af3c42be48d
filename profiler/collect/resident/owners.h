/*
 * owners.h - whose are which addresses of anonymous memory, from all who know: a list for each.
 *
 * Each adds its rows to the table and its ranges to a list; resident.c lays the lists over each
 * other.  0 or a negative errno.
 *
 *   source   profiler/collect/resident/owners.c, arenas.c, stacks.c
 */
#ifndef COLLECT_RESIDENT_OWNERS_H
#define COLLECT_RESIDENT_OWNERS_H

#include "memory.h"
#include "allocator.h"
#include "ranges.h"
#include "residence.h"
#include "smaps.h"

struct owners {
	struct residence *table;
	struct smaps     *smaps;
	struct allocator *allocator; /* its name is "" where it is not known */
	struct memory     memory;
	int               pages;     /* smaps_pages_open()'s */
	unsigned          threads;   /* of the program: stacks.c */
};

/* Is it memory that only pages of zeros can be behind: of no file, private, writable? */
static inline bool
owners_is_anonymous(const struct smaps_mapping *m)
{
	return !*m->path && m->writable && !m->shared;
}

int owners_ours(struct owners *o, struct ranges *ret);    /* pages.h */
int owners_makers(struct owners *o, struct ranges *ret);  /* resident_maker */
int owners_stacks(struct owners *o, struct ranges *ret);  /* stacks.c */
int owners_kept_stacks(struct owners *o, struct ranges *ret); /* of ended threads, as they look; stacks.c */
int owners_objects(struct owners *o, struct ranges *ret); /* .bss of files */
int owners_arenas(struct owners *o, struct ranges *ret);  /* arenas.c: glibc's arenas, but for the main one */
/* Blocks with a mapping of their own, in what none of `known` has; after all others. */
int owners_blocks(struct owners *o, const struct ranges *known, struct ranges *ret);

#endif
