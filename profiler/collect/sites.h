/*
 * sites.h - what has happened at each stack, counted without a lock.
 *
 * For collectors whose events come from anywhere: a hook in a thread that holds
 * locks of its own, a signal handler.  Counts only grow.
 */
#ifndef COLLECT_SITES_H
#define COLLECT_SITES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.h"
#include "stack_table.h"

#define SITES_ONE 65536 /* a count of one: counts are kept in 1/65536 */
#define SITES_MAX 65536 /* stacks of one collector; beyond it all share [stack table full] */

struct site {
	_Atomic uint32_t stack; /* 0: not taken */
	_Atomic uint64_t count; /* in 1/SITES_ONE */
	_Atomic uint64_t value;
};

struct sites {
	struct site *_Atomic slots;
	_Atomic size_t       used;
	struct site          pseudo[STACK_PSEUDO_MAX];
};

/* Room for them; once it is there, nothing happens.  0 or -ENOMEM. */
int    sites_open(struct sites *s);
/* One reference of the stack is taken over.  Returns where it counts: the stack, or
 * STACK_PSEUDO_FULL.  Any thread, signal-safe, no allocation. */
uint32_t sites_add(struct sites *s, uint32_t stack, uint64_t count, uint64_t value);
/* More, for what sites_add() returned. */
void   sites_more(struct sites *s, uint32_t site, uint64_t count, uint64_t value);
/* Stacks that have been seen. */
size_t sites_count(struct sites *s);
/* The sum of the counts, rounded. */
uint64_t sites_total(struct sites *s);
/* Adds a sample for each: count, and value where the profile has a second type.  0 or
 * -ENOMEM. */
int    sites_profile(struct sites *s, struct profile *p);
/* In a child: nothing has happened yet. */
void   sites_forked(struct sites *s);

#endif
