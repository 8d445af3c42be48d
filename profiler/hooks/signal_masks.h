/*
 * signal_masks.h - masks and handlers that the program sets, while ours stay in place.
 */
#ifndef HOOKS_SIGNAL_MASKS_H
#define HOOKS_SIGNAL_MASKS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * signal_masks_watch - from now on, for good, where the program has hooks
 *
 *   reserve  what installs the handler of the CPU profile if need be, see cpu_signal_reserve()
 *   taken    is called when the program is about to take a signal that a handler of ours has, and once it has it
 *            (done).  On its thread, in handlers and in children of vfork(), too
 *   threads  any; again does nothing more for the process, and as much for the calling
 *            thread, if it is the program's, as signal_masks_thread()
 *   signals  not from a handler
 *
 * signal_masks_thread - once that is so: if the calling thread blocks every signal, the profiler's alone is let through
 */
typedef int  signal_masks_reserve_fn(uint64_t avoid);
typedef void signal_masks_taken_fn(int number, bool done);
void signal_masks_watch(signal_masks_reserve_fn *reserve, signal_masks_taken_fn *taken);
void signal_masks_thread(void);

#endif
