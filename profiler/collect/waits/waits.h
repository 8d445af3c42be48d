/*
 * waits.h - where threads wait for each other, sampled: the mutex and block profiles.
 *
 * mutex blames the stack that let others wait, when it unlocks; block blames the stack
 * that waited.  Both are Go's, by the rules of SetMutexProfileFraction and
 * SetBlockProfileRate, and both are cumulative.
 */
#ifndef COLLECT_WAITS_WAITS_H
#define COLLECT_WAITS_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.h"

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
/* Whether waits and wake-ups are told to events/wait.h; beside the profiles, which it
 * does not change.  0, -ENOTSUP, -ENOMEM. */
int     waits_trace(bool on);
int64_t waits_mutex_fraction(void); /* 0: off */
int64_t waits_block_rate(void);

int     waits_snapshot_mutex(struct profile *ret); /* 0 or -ENOMEM, also while off */
int     waits_snapshot_block(struct profile *ret);
size_t  waits_mutex_stacks(void);
size_t  waits_block_stacks(void);

/* "" or why waits cannot be seen, or some of them not; constant. */
const char *waits_status(void);
/* In a child: off, and nothing has been seen.  Signal-safe. */
void    waits_forked(void);

#endif
