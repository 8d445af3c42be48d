/*
 * stack_counts.h - what has happened at each stack, counted without a lock.
 *
 * For collectors whose events come from anywhere: a hook in a thread that holds
 * locks of its own, a signal handler.  Counts only grow.
 */
#ifndef COLLECT_STACK_COUNTS_H
#define COLLECT_STACK_COUNTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.h"
#include "stack_table.h"
#include "touched.h"

#define SITES_ONE 65536 /* a count of one: counts are kept in 1/65536 */
#define SITES_MAX TOUCHED_ENTRIES /* stacks of one collector; beyond it all share [stack table full] */

struct site {
	_Atomic uint32_t stack; /* 0: not taken */
	_Atomic uint64_t count; /* in 1/SITES_ONE */
	_Atomic uint64_t value;
};

struct stack_counts {
	struct site *_Atomic slots;
	struct touched       touched; /* of slots */
	struct site          pseudo[STACK_PSEUDO_MAX];
};

/* Room for them; once it is there, nothing happens.  0 or -ENOMEM. */
int    stack_counts_open(struct stack_counts *s);
/* One reference of the stack is taken over.  Returns where it counts: the stack, or
 * STACK_PSEUDO_FULL.  Any thread, signal-safe, no allocation. */
uint32_t stack_counts_add(struct stack_counts *s, uint32_t stack, uint64_t count, uint64_t value);
/* More, for what stack_counts_add() returned. */
void   stack_counts_more(struct stack_counts *s, uint32_t site, uint64_t count, uint64_t value);
/* Stacks that have been seen. */
size_t stack_counts_count(struct stack_counts *s);
/* The sum of the counts, rounded. */
uint64_t stack_counts_total(struct stack_counts *s);
/* Adds a sample for each: count, and value where the profile has a second type.  0 or
 * -ENOMEM. */
int    stack_counts_profile(struct stack_counts *s, struct profile *p);
/* In a child: nothing has happened yet. */
void   stack_counts_forked(struct stack_counts *s);

#endif
