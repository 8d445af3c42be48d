/*
 * window.h - what one wall-clock window has counted, and the profile it becomes.
 *
 * Under the lock of windows.h while the window is open; afterwards it is its owner's alone.
 */
#ifndef COLLECT_WALL_WINDOW_H
#define COLLECT_WALL_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "cpu_sampler.h"
#include "profile.h"
#include "threads.h"
#include "window_counts.h"
#include "windows.h"

struct wall_window {
	struct window        window;
	struct cpu_window   *cpu; /* NULL: none could be had */
	uint64_t             ticks, taken; /* that passed; in which somebody was looked at */
	uint64_t             looks;
	double               lost;         /* thread-ticks that found no room */
	/* In thread-ticks: of a blocked stack (tid 0), or of a thread that runs (stack 0). */
	struct window_counts counts;
	int64_t              sampler_ns;   /* the sampler's own clock; at the end, what it has used */
	/* At its end. */
	size_t               threads;
	const char          *cpu_why;      /* no CPU window */
};

/* NULL without memory. */
struct wall_window *wall_window_new(void);
void wall_window_free(struct wall_window *w);
/* In a child: window_counts_forget(). */
void wall_window_forget(struct wall_window *w);
/* Each of the looks stands for so many threads in its ticks. */
void wall_window_count(struct wall_window *w, const struct wall_look *looks, size_t n, double threads);
/* 0 or -ENOMEM.  The CPU window has ended.  idle: with what waits. */
int  wall_window_profile(const struct wall_window *w, bool idle, struct profile *ret);

#endif
