/*
 * perf.h - samples of another process' CPU time, by the kernel's perf_event_open(2).
 *
 * An event for each thread on each processor; a ring for each processor, which all threads
 * there share.  The process is not stopped, and no code of ours runs in it.
 *
 *   limits   PERF_STACK_BYTES of a stack; a descriptor for each thread on each processor
 *   threads  one at a time
 *   source   profiler/outside/perf.c
 */
#ifndef OUTSIDE_PERF_H
#define OUTSIDE_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch_perf.h"

#define PERF_STACK_BYTES ((size_t)32 << 10) /* of each sample, from sp up */

struct perf_sample {
	pid_t       tid;
	bool        has_registers; /* of user space; not while it is being made or buried */
	uint64_t    registers[ARCH_PERF_COUNT];
	const void *stack; /* not aligned */
	size_t      stack_bytes;
};

typedef void perf_sample_fn(void *arg, const struct perf_sample *s);

struct perf_thread;
struct perf_ring;

struct perf {
	pid_t               pid;
	int64_t             period_ns;
	bool                no_kernel; /* time in the kernel is not sampled: that needs more rights */
	struct perf_ring   *rings; /* by processor */
	int                 ring_count;
	struct perf_thread *threads; /* by tid */
	size_t              count, room, next; /* next: where a look goes on, as it lists them in the same order */
	uint64_t            lost; /* samples that found no room */
};

/*
 * perf_open - no thread is sampled yet
 *
 *   returns  0; -EACCES or -EPERM: not allowed (perf_refused() says why); -ENOSYS: not on this processor, or by
 *            this kernel; or another negative errno
 */
int  perf_open(struct perf *ret, pid_t pid, int64_t period_ns);
/* Samples threads that are new, and forgets those that are gone.  How many there are, or a negative errno. */
int  perf_follow(struct perf *p);
/* What has come by now is what the next perf_drain() takes.  True: the process has begun another program, and some is of that one. */
bool perf_look(struct perf *p);
/* Calls fn for each sample since. */
void perf_drain(struct perf *p, perf_sample_fn *fn, void *arg);
void perf_close(struct perf *p);

/* Its stack, leaf first, callers as return address - 1; at least 1.  s has registers, max is above 0. */
unsigned perf_walk(const struct perf_sample *s, uintptr_t *pcs, unsigned max, int *ret_truncated);

#endif
