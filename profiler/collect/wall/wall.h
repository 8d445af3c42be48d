/*
 * wall.h - where threads spend time, running or not: the profile fgprof.
 *
 * One sampler serves any number of windows; it exists only while one is open.  It wakes
 * nobody and interrupts nobody: blocked threads are read from outside, and where running
 * ones stand is known from a CPU window that is open beside.
 *
 *   memory   mmap only
 *   threads  any; windows overlap
 *   signals  not from a handler
 *   fork     a child has no windows and no sampler
 *   source   profiler/collect/wall/wall.c
 */
#ifndef COLLECT_WALL_WALL_H
#define COLLECT_WALL_WALL_H

#include <stdbool.h>

#include "profile.h"

#define WALL_HZ         99    /* looks a second; not in step with what runs at 100 */
#define WALL_SHARE_MAX  0.02  /* of one processor, by the sampler's own clock */

struct wall_window;

/* 0 or a negative errno: -EOPNOTSUPP, wall_status(); -EAGAIN, no thread; -ENOMEM; or no descriptor is left. */
int  wall_window_open(struct wall_window **ret);
/* Ends the window and makes its profile, with what waits (idle) or without; frees the window. */
int  wall_window_close(struct wall_window *w, bool idle, struct profile *ret);
void wall_window_cancel(struct wall_window *w);

#endif
