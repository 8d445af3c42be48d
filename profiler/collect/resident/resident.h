/*
 * resident.h - what the resident memory of this process is for: one table, each page once.
 *
 *   threads  any of ours, on a job; several at once
 *   source   profiler/collect/resident/resident.c
 */
#ifndef COLLECT_RESIDENT_RESIDENT_H
#define COLLECT_RESIDENT_RESIDENT_H

#include <stdint.h>

#include "profile.h"
#include "residence.h"

/* Fills in the table, which residence_release() takes back; it is sorted.  Takes a second at most
 * where the allocator does not answer.  0; -ENOMEM; or why /proc/self/smaps cannot be read. */
int  resident_read(struct residence *ret);
/* Some of its sums; where they cannot be had they are not known. */
void resident_process(struct profile_process *ret);

/*
 * Whoever knows which stack has mapped what says so here: list() calls add() for each range that is
 * mapped now, with a stack that lives as long as the call.  0 or what add() returned.
 */
struct resident_maker {
	int (*list)(int (*add)(void *arg, uintptr_t start, uintptr_t limit, uint32_t stack), void *arg);
};
extern const struct resident_maker *_Atomic resident_maker;

#endif
