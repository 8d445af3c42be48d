/*
 * parts.h - what the files of waits share; for them alone.
 */
#ifndef COLLECT_WAITS_PARTS_H
#define COLLECT_WAITS_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "stack_counts.h"

extern struct stack_counts     waits_mutex_sites, waits_block_sites;
extern _Atomic uint64_t waits_truncated; /* stacks that end early */

extern struct waits_state {
	_Atomic int64_t mutex_fraction, block_rate; /* 0: off */
	_Atomic bool    tracing; /* waits are told to a trace as well */
	_Atomic int64_t onces;   /* routines of pthread_once that run now, at least */
} waits_state;

/* waits/record.c: the core's part of hooks/abi.h. */
int  waits_on_unlock(struct hooks_wait *w);
int  waits_on_wait(struct hooks_wait *w);

/* waits/calls.c, by enum hooks_name: has it a holder, who is to know of a waiter? */
bool waits_is_lock(uint32_t name);
/* Does it give up a mutex, its second argument, while it waits? */
bool waits_is_cond(uint32_t name);
/* Or did it fail at once, for a wrong use?  r: its answer. */
bool waits_was_wait(const struct hooks_wait *w, int r);

/* Does this thread's unlock release it?  Then it still holds it; or has no right to it, and is refused. */
bool waits_mutex_is_released(uintptr_t mutex, int32_t tid);
/* leaving: readers that are about to unlock, with the caller if it is one. */
bool waits_rwlock_is_released(uintptr_t rwlock, int32_t tid, int32_t leaving);

/* What a wait counts for. */
struct waits_weight {
	uint64_t count; /* in 1/SITES_ONE */
	uint64_t delay_ns;
};

/* Is a wait of this length recorded at this rate?  random: below 2^63. */
bool waits_weigh(int64_t delay_ns, int64_t rate_ns, uint64_t random, struct waits_weight *ret);

#endif
