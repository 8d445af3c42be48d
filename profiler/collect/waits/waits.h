/*
 * waits.h - where threads wait for each other, sampled: the mutex and block profiles.
 *
 * mutex blames the stack that let others wait, when it unlocks; block blames the stack
 * that waited.  Both are Go's, by the rules of SetMutexProfileFraction and
 * SetBlockProfileRate, and both are cumulative.
 */
#ifndef COLLECT_WAITS_WAITS_H
#define COLLECT_WAITS_WAITS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "stack_counts.h"

#define WAITS_FRACTION_MAX INT32_MAX

/*
 * waits_set_mutex_fraction - sample one of `fraction` unlocks that others waited for
 * waits_set_block_rate - sample waits of rate_ns or longer, and shorter ones as often
 *         as their part of it; 1: all
 *
 *   fraction, rate_ns  0 switches off; numbers below 0 count as 0
 *   returns  0; -ENOTSUP without hooks, -ENOMEM (waits_status() says so)
 *   threads  any, any time; not from signal handlers
 */
int     waits_set_mutex_fraction(int64_t fraction);
int     waits_set_block_rate(int64_t rate_ns);
int64_t waits_mutex_fraction(void); /* 0: off */

/* "" or why waits cannot be seen, or some of them not; constant. */
const char *waits_status(void);
/* In a child: off, and nothing has been seen.  Signal-safe. */
void    waits_forked(void);

/* ---- between waits.c and record.c ---- */

extern struct stack_counts waits_mutex_sites, waits_block_sites;
extern _Atomic uint64_t    waits_truncated; /* stacks that end early */

extern struct waits_state {
	_Atomic int64_t mutex_fraction, block_rate; /* 0: off */
	_Atomic bool    tracing; /* waits are told to a trace as well */
	_Atomic int64_t onces;   /* routines of pthread_once that run now, at least */
} waits_state;

/* What the hooks call, see abi.h. */
int  waits_on_unlock(struct hooks_wait *w);
int  waits_on_wait(struct hooks_wait *w);

/* What a wait counts for. */
struct waits_weight {
	uint64_t count; /* in 1/SITES_ONE */
	uint64_t delay_ns;
};

/* Is a wait of this length recorded at this rate?  random: below 2^63. */
bool waits_weigh(int64_t delay_ns, int64_t rate_ns, uint64_t random, struct waits_weight *ret);

#endif
