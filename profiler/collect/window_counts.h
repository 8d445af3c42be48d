/*
 * window_counts.h - what a window has counted: by stack, labels and thread.
 *
 * A window of hours holds each once.  Memory is from mmap, and none is given back before the
 * end; without memory to grow the table fills up to the brim.
 *
 *   threads  one at a time: under the lock of its window, or its owner's alone
 *   source   profiler/collect/window_counts.c
 */
#ifndef COLLECT_WINDOW_COUNTS_H
#define COLLECT_WINDOW_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct window_count {
	uint32_t stack, tid; /* both 0: free; of the stack one reference is held */
	uint32_t labels;     /* likewise; 0: none */
	double   weight;     /* the collector's; whole numbers below 2^53 are exact */
};

struct window_counts {
	struct window_count *counts; /* open addressing */
	size_t               capacity, used;
};

static inline bool
window_count_is(const struct window_count *c)
{
	return c->stack || c->tid;
}

/* 0 or -ENOMEM. */
int  window_counts_open(struct window_counts *t);
void window_counts_close(struct window_counts *t);
/* Borrows the references of stack and labels, takes some of its own if it needs them.  False:
 * there is no room. */
bool window_counts_add(struct window_counts *t, uint32_t stack, uint32_t labels, uint32_t tid, double weight);

#endif
