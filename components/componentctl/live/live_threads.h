/*
 * live_threads.h - which threads of a process of this machine use the processors.
 *
 *   source   components/componentctl/live/live_threads.c
 */
#ifndef COMPONENTCTL_LIVE_THREADS_H
#define COMPONENTCTL_LIVE_THREADS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "text.h"

struct live_thread {
	pid_t   tid;
	char    state;
	char    name[16];
	int64_t cpu_ns, used_ns; /* since it began; since the last look */
};

struct live_threads {
	struct live_thread *all;
	size_t              count, room;
	int64_t             at_ns, passed_ns; /* of the last look, by the monotonic clock; since the one before */
};

/* 0, -ESRCH: the process is gone, or another negative errno. */
int  live_threads_look(struct live_threads *t, pid_t pid);
/* The busiest first, at most so many. */
void live_threads_print(const struct live_threads *t, size_t most, struct text *out);
void live_threads_release(struct live_threads *t);

#endif
