/*
 * free_signal.h - a signal for a handler of ours, taken from nobody.
 */
#ifndef HOOKS_FREE_SIGNAL_H
#define HOOKS_FREE_SIGNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

typedef void free_signal_fn(int number, siginfo_t *info, void *context);

/* Is this handler still that of the signal?  0 is the signal of nobody. */
bool free_signal_is(int number, free_signal_fn *handler);
/* sigaction(2), past a hook of ours. */
int  free_signal_action(int number, const struct sigaction *act, struct sigaction *old);
/* fn is called with each that gets a handler of ours from now on. */
void free_signal_watch(void (*fn)(int number));
/* Signal-safe: those that were ever taken, the first in bit 0; and is it still ours? */
uint64_t free_signal_taken(void);
bool     free_signal_has(int number);
/* Installs the handler of one that was taken once more: signals of ours may still be due, and
 * at its default it would end the process.  As sigaction(2). */
int      free_signal_again(int number, struct sigaction *ret_before);
/* In a handler: is it on an alternate stack with less than that many bytes left? */
static inline bool
free_signal_short_of_stack(const void *context, size_t bytes)
{
	const stack_t *stack = &((const ucontext_t *)context)->uc_stack;
	size_t         left = (size_t)((const char *)__builtin_frame_address(0) - (const char *)stack->ss_sp);

	return left < stack->ss_size && left < bytes; /* on the thread's own stack left is no part of it */
}

/* Installs the handler for wanted if that is at its default and not to be avoided, else
 * for a real-time signal of which that is true.  avoid: what threads wait for, the first
 * signal in bit 0.  Where none is left, one that another handler of ours has is for both: each is
 * called for all that comes.  The number, or -EBUSY.  The handler is never removed. */
int  free_signal_take(int wanted, uint64_t avoid, free_signal_fn *handler);

#endif
