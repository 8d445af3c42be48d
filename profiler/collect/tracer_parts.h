/*
 * tracer_parts.h - what the files of the tracer share; for them alone.
 */
#ifndef COLLECT_TRACER_PARTS_H
#define COLLECT_TRACER_PARTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracer.h"

#define TRACER_WHY_BYTES 192

struct tracer_window {
	struct tracer_window *next;
	struct trace          trace;
	struct cpu_window    *cpu; /* NULL: no samples */
	uint64_t              lost_before, settled_ns;
};

struct tracer_state {
	pthread_mutex_t       life, lock;
	struct tracer_window *windows;
	_Atomic bool          on;
	_Atomic bool          by_switches;
	_Atomic bool          stop;
	bool                  started; /* life: thread exists */
	pthread_t             thread;
	char                  why[TRACER_WHY_BYTES];   /* no switches */
	char                  waits[TRACER_WHY_BYTES]; /* no waits */
	size_t                records; /* lock: of all windows */
	uint64_t              lost;    /* lock: found no room in a window */
};

extern struct tracer_state tracer_state;

/* tracer_drain.c; with `lock` held. */
void     tracer_window_add(struct tracer_window *w, const struct trace_record *r);
/* To every window; borrows the reference of the stack. */
void     tracer_tell(const struct trace_record *r, const char *name, const char *text);
void     tracer_drain(void);
uint64_t tracer_lost_now(void);

/* tracer_sources.c; with `life` held.  0 or a negative errno. */
int      tracer_sources_start(void);
void     tracer_sources_stop(void);

#endif
