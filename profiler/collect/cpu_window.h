/*
 * cpu_window.h - what one window has counted, and the profile it becomes.
 *
 * Memory is from mmap.  Under cpu.c's lock while the window is open; afterwards it is
 * its owner's alone.
 */
#ifndef COLLECT_CPU_WINDOW_H
#define COLLECT_CPU_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.h"

struct cpu_count {
	uint32_t stack; /* 0: empty; else one reference held */
	uint32_t labels; /* likewise; 0: none */
	uint32_t tid;    /* 0: not told apart, or not known any more */
	uint32_t unused;
	uint64_t periods;
};

struct cpu_window {
	struct cpu_window *next;
	int64_t            time_ns;  /* UTC */
	int64_t            begin_ns; /* monotonic */
	int64_t            period_ns;
	bool               by_thread; /* counts are told apart by thread, too */
	uint64_t           ring_lost_before;
	int64_t            unseen_before_ns;
	uint64_t           lost, truncated, periods;
	/* Of lost: threads that were not seen, those that block the signal, a ring that was full,
	 * no memory for another stack or count. */
	uint64_t           unseen, blocked, ring_full, no_room;
	uint64_t           under_way; /* that passed in it, or before, and are told after its end */
	unsigned           no_slot_max, blocking_max; /* threads */
	struct cpu_count  *counts;                    /* open addressing */
	size_t             capacity, used;
};

/* What the profile's comments say beside the counts. */
struct cpu_facts {
	int         signal_number;
	const char *no_slot_why; /* threads had no timer */
};

/* NULL without memory. */
struct cpu_window *cpu_window_new(void);
/* Gives the references of its stacks back. */
void cpu_window_free(struct cpu_window *w);
/* Borrows the references of stack and labels, takes some of its own where it needs them. */
void cpu_window_count(struct cpu_window *w, uint32_t tid, uint32_t stack, uint32_t labels, uint64_t periods);
/* 0 or -ENOMEM. */
int  cpu_window_profile(const struct cpu_window *w, int64_t end_ns, const struct cpu_facts *facts, struct profile *ret);

#endif
