/*
 * wall_window.h - what one wall-clock window has counted, and the profile it becomes.
 *
 * Under wall.c's lock while the window is open; afterwards it is its owner's alone.
 */
#ifndef COLLECT_WALL_WINDOW_H
#define COLLECT_WALL_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "cpu_window.h"
#include "profile.h"
#include "wall_threads.h"

/* A blocked stack (tid 0), or a thread that runs (stack 0); on whose behalf. */
struct wall_count {
	uint32_t tid, stack; /* of the stack one reference is held; both 0: free */
	uint32_t labels;     /* one reference is held; 0: none */
	double   weight;     /* thread-ticks */
};

struct wall_window {
	struct wall_window *next;
	struct cpu_window  *cpu; /* NULL: none could be had */
	int64_t             time_ns, begin_ns; /* UTC, monotonic */
	int64_t             cpu_begin_ns;      /* the sampler's own clock */
	uint64_t            ticks, taken;      /* that passed; in which somebody was looked at */
	uint64_t            looks;
	double              lost;              /* thread-ticks that found no room */
	struct wall_count  *counts;            /* open addressing */
	size_t              capacity, used;
};

/* What the comments say beside the counts. */
struct wall_facts {
	int64_t     end_ns;  /* monotonic */
	int64_t     cpu_ns;  /* the sampler's own clock now */
	size_t      threads; /* now */
	const char *cpu_why; /* no CPU window */
};

/* NULL without memory. */
struct wall_window *wall_window_new(void);
void wall_window_free(struct wall_window *w);
/* Each of the looks stands for so many threads in its ticks. */
void wall_window_count(struct wall_window *w, const struct wall_look *looks, size_t n, double threads);
/* 0 or -ENOMEM.  The CPU window has ended. */
int  wall_window_profile(const struct wall_window *w, const struct wall_facts *facts, struct profile *ret);

#endif
