/*
 * cpu_parts.h - what the files of the CPU profile share: the one sampler and its state.
 *
 * Two locks.  `life` is held while the sampler starts and stops, joining its thread
 * included; `lock` covers windows, timers and the reading end of the ring.  Always
 * in that order; handlers take neither.
 */
#ifndef COLLECT_CPU_PARTS_H
#define COLLECT_CPU_PARTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cpu_timers.h"
#include "cpu_window.h"
#include "own_loop.h"

extern struct cpu_engine {
	pthread_mutex_t         life, lock;
	struct cpu_window      *windows;
	_Atomic bool            running;
	struct own_loop         loop;      /* life: component-cpu */
	int                     signal_number;
	struct cpu_timers_state state;
	_Atomic unsigned        hz;        /* of the next start */
	int64_t                 period_ns; /* lock: of this one */
	_Atomic(const char *)   status;
} cpu_engine;

/* ---- cpu_engine.c ---- */

/* Under life.  All that samples; start: 0 or a negative errno, and nothing goes on. */
int  cpu_engine_start(void);
void cpu_engine_stop(void);
/* Under lock.  All that was told so far goes to the windows of now; how many periods have
 * passed that will be told later. */
uint64_t cpu_engine_settle(void);
/* What windows remember of the threads that are missing. */
void cpu_engine_note(void);

/* ---- cpu_status.c ---- */

/* What a window could not be had for; constant text for the index. */
const char *cpu_status_of_start(int err);
extern const char cpu_status_refused[];
/* What it misses, or "". */
const char *cpu_status_of_state(const struct cpu_timers_state *state);

#endif
