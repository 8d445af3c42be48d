/*
 * by_tables.h - the walk by tables, behind the doors of unwind.h.
 */
#ifndef UNWIND_BY_TABLES_H
#define UNWIND_BY_TABLES_H

#include <stdbool.h>

#include "unwind.h"
#include "unwind_window.h"

/* Leaf first into pcs; *ret_truncated as in unwind_capture().  -1: there are no
 * tables, or the leaf is nowhere, so another way is to be tried. */
int unwind_tables_walk(struct unwind_reader *r, const struct unwind_regs *regs, uintptr_t *pcs, unsigned max,
		       int *ret_truncated);

/* ---- unwind.c, for who starts and stops ---- */

/* The row of a mode, or another one that can be had in its place; *ret_err: the mode's own has a
 * way_out, and cannot be had. */
const struct unwinder *unwinder_open(enum unwind_mode mode, int *ret_err);
/* From now on stacks are walked so. */
void                   unwinder_choose(const struct unwinder *u);
void                   unwinders_forked(void);

/* ---- refresh.c ---- */

/* A walk met a pc that is no code as far as is known: signal-safe, wakes the thread of
 * refresh.c at most once. */
void unwind_refresh_want(uintptr_t pc);
/* The same where an object has taken another's place. */
void unwind_refresh_want_look(void);
/* Wakes it for the verdicts that are wanted (verdict.h).  False: there is none, or it has
 * nothing to spend. */
bool unwind_refresh_wake(void);

/* What the thread has spent since the process began; for tests. */
struct unwind_spent {
	int64_t  cpu_ns, longest_ns; /* in one round */
	unsigned rounds, looks;      /* looks at all mappings */
};
void unwind_refresh_spent(struct unwind_spent *ret);
/* It may spend so much of the wall clock's time while nobody samples, and at once. */
#define UNWIND_SPEND_SHARE 1000
#define UNWIND_SPEND_NS    20000000L

#endif
