/*
 * parts.h - what the files of the CPU profile share: the one sampler and its state.
 */
#ifndef COLLECT_CPU_PARTS_H
#define COLLECT_CPU_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "timers.h"
#include "cpu_window.h"
#include "windows.h"

extern struct cpu_engine {
	struct windows          windows;
	_Atomic bool            running;
	int                     signal_number; /* lock, as what follows */
	struct cpu_timers_state state;
	uint64_t                under_way; /* when settled last: periods that have passed and will be told later */
	int64_t                 period_ns;
	_Atomic unsigned        hz;        /* of the next start */
	_Atomic(const char *)   status;
} cpu_engine;

/* What a window could not be had for; constant text for the index. */
const char *cpu_status_of_start(int err);
extern const char cpu_status_refused[];
/* What it misses, or "". */
const char *cpu_status_of_state(const struct cpu_timers_state *state);

#endif
