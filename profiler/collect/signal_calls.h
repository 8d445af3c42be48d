/*
 * signal_calls.h - masks and handlers that the program sets, while ours stay in place.
 */
#ifndef COLLECT_SIGNAL_CALLS_H
#define COLLECT_SIGNAL_CALLS_H

#include <stdint.h>

/*
 * signal_calls_watch - from now on, for good, where the program has hooks
 *
 *   reserve  what installs the handler of the CPU profile if need be, see cpu_signal_reserve()
 *   threads  any; again does nothing more for the process, and as much for the calling
 *            thread: if it blocks every signal, the profiler's alone is let through
 *   signals  not from a handler
 */
typedef int signal_calls_reserve_fn(uint64_t avoid);
void signal_calls_watch(signal_calls_reserve_fn *reserve);

#endif
