/*
 * signal_calls.h - masks and handlers that the program sets, while ours stay in place.
 */
#ifndef COLLECT_SIGNAL_CALLS_H
#define COLLECT_SIGNAL_CALLS_H

#include <signal.h>
#include <stdint.h>

/*
 * signal_calls_watch - from now on, for good, where the program has hooks
 *
 *   threads  any; again does nothing more for the process, and as much for the calling
 *            thread: if it blocks every signal, the profiler's alone is let through
 *   signals  not from a handler
 */
void signal_calls_watch(void);
/* The same for the calling thread, if the process is watched. */
void signal_calls_thread(void);
/* sigaction(2), without what the program is told of it. */
int  signal_calls_real(int number, const struct sigaction *act, struct sigaction *old);
/* A handler of ours is there: no handler of the program on its alternate stack is to be
 * interrupted by it, as there may be room for one frame of the kernel and not for two. */
void signal_calls_guard(int number);

#endif
