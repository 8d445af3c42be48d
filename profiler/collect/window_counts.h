/*
 * window_counts.h - what a window, or a snapshot, has counted: by stack, labels and thread.
 *
 * A window of hours holds each once, WINDOW_COUNTS_MAX at most.  Memory is from mmap, and none is given back before the
 * end.
 *
 *   threads  one at a time: under the lock of its window, or its owner's alone
 *   source   profiler/collect/window_counts.c
 */
#ifndef COLLECT_WINDOW_COUNTS_H
#define COLLECT_WINDOW_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "table.h"

#define WINDOW_COUNTS_MAX (1U << 18) /* 25 MiB: where threads are told apart, each that comes and goes is another one */
#define WINDOW_COUNTS_FEW 256         /* some 20 pages of stacks */

struct window_count {
	uint32_t stack, tid; /* of the stack one reference is held */
	uint32_t labels;     /* likewise; 0: none */
	double   weight;     /* the collector's; whole numbers below 2^53 are exact */
};

struct window_counts { /* zeros: none yet */
	struct table table; /* what it counts, mixed, to struct window_count */
	struct arena arena; /* has them */
};

/* i from 0 to table.size; NULL: none there. */
static inline const struct window_count *
window_counts_at(const struct window_counts *t, size_t i)
{
	return (const struct window_count *)(uintptr_t)t->table.slots[i].value;
}

void window_counts_close(struct window_counts *t);
/* In a child of fork(), which is not to wait: of more than WINDOW_COUNTS_FEW the memory alone.  To give back a reference copies
 * the page that has its count; the stacks stay in the child's table instead. */
void window_counts_forget(struct window_counts *t);
/* What is in one, also in another that is empty.  0 or -ENOMEM. */
int  window_counts_copy(const struct window_counts *from, struct window_counts *to);
/* Borrows the references of stack and labels, takes some of its own if it needs them.  False:
 * there is no room. */
bool window_counts_add(struct window_counts *t, uint32_t stack, uint32_t labels, uint32_t tid, double weight);

#endif
