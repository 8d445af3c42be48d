/*
 * free_signal.h - a signal for a handler of ours, taken from nobody.
 */
#ifndef COLLECT_FREE_SIGNAL_H
#define COLLECT_FREE_SIGNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

typedef void free_signal_fn(int number, siginfo_t *info, void *context);

/* Is this handler still that of the signal?  0 is the signal of nobody. */
bool free_signal_is(int number, free_signal_fn *handler);
/* Installs the handler for wanted if that is at its default and not to be avoided, else
 * for a real-time signal of which that is true.  avoid: what threads wait for, the first
 * signal in bit 0.  The number, or -EBUSY.  The handler is never removed. */
int  free_signal_take(int wanted, uint64_t avoid, free_signal_fn *handler);

#endif
