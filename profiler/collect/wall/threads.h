/*
 * threads.h - the threads of the process in a random order, and a look at some.
 *
 * All of it is called under wall/wall.c's lock.
 */
#ifndef COLLECT_WALL_THREADS_H
#define COLLECT_WALL_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "our_fd.h"
#include "stack_table.h"
#include "dump/quiet.h"

/* What was seen of one thread. */
struct wall_look {
	uint32_t stack; /* where it is blocked, a reference held; 0: it runs */
	int32_t  tid;
	double   ticks; /* that passed since the looks before: the caller's */
	uint32_t labels; /* what the thread had, a reference held; 0: none */
};

struct wall_thread;

struct wall_threads {
	struct quiet        quiet;
	struct our_fd_kept  task;  /* the folder of quiet */
	struct wall_thread *all;   /* in random order; none of ours, as far as they run */
	size_t              count, room;
	size_t              zombies; /* of those that were listed */
	size_t              next;  /* whose turn it is */
	bool                stale; /* somebody has come or gone */
	size_t              listed; /* threads of the process when they were listed */
	uint64_t            random;
	uintptr_t           pcs[STACK_FRAMES_MAX];
};

/* 0 or a negative errno.  By the thread that looks. */
int  wall_threads_open(struct wall_threads *t);
void wall_threads_close(struct wall_threads *t);
/* In a forked child, where the descriptors are closed. */
void wall_threads_forget(struct wall_threads *t);
/* How many there are now, ours left out; notes a change. */
size_t wall_threads_now(struct wall_threads *t);
/* Lists them anew. */
void wall_threads_list(struct wall_threads *t);
/* At most max of them, each thread at most once; how many were looked at.  The references
 * are the caller's. */
size_t wall_threads_look(struct wall_threads *t, struct wall_look *looks, size_t max);
/* In [0, 1). */
double wall_random(uint64_t *state);

#endif
