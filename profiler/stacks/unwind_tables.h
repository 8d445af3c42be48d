/*
 * unwind_tables.h - the walk by tables, behind the doors of unwind.h.
 */
#ifndef STACKS_UNWIND_TABLES_H
#define STACKS_UNWIND_TABLES_H

#include "unwind.h"
#include "unwind_load.h"

/* Leaf first into pcs; *ret_truncated as in unwind_capture().  -1: there are no
 * tables, or none knows the leaf, so another way is to be tried. */
int unwind_tables_walk(struct unwind_reader *r, const struct unwind_regs *regs, uintptr_t *pcs, unsigned max,
		       int *ret_truncated);

/* unwind.c asks this walk first, or no more. */
void unwind_use_tables(bool on);
/* A walk met a pc that no object covers: signal-safe, wakes the thread of
 * unwind_refresh.c at most once. */
void unwind_refresh_want(void);

#endif
