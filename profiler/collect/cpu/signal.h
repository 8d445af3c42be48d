/*
 * signal.h - the handler behind the CPU timers.
 */
#ifndef COLLECT_CPU_SIGNAL_H
#define COLLECT_CPU_SIGNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu_sampler.h"

/* Picks a signal and installs the handler: SIGPROF if it is at its default, else
 * a free real-time signal.  The number, or -EBUSY. */
int  cpu_signal_install(void);
/* The same, but stays with one that nobody has replaced yet, and only asks for it.  Signal-safe.
 * avoid: as in free_signal_take().  The number, or -EBUSY. */
int  cpu_signal_reserve(uint64_t avoid);
/* Has nobody replaced the handler since? */
bool cpu_signal_ours(int signal_number);
/* "SIGPROF" or "SIGRTMAX-3". */
void cpu_signal_name(int signal_number, char *buf, size_t size);
/* From now on samples go to the ring. */
void cpu_signal_enable(void);
/* From now on they do not.  False: a handler is still at work after some seconds,
 * and what it writes to must stay where it is. */
bool cpu_signal_disable(void);
/* One was still at work after that, and has not ended since. */
bool cpu_signal_stuck(void);
/* struct cpu_sampler's watch. */
void cpu_signal_watch(cpu_watch_fn *fn);
/* In a forked child: no handler of the parent's other threads is at work here. */
void cpu_signal_forked(void);
/* What handlers have taken since enabled, on the clock: without a processor, too. */
uint64_t cpu_signal_mean_ns(void);
uint64_t cpu_signal_longest_ns(void);
/* How many there were since the process began, and what all of them have taken. */
uint64_t cpu_signal_all(uint64_t *ret_ns);

#endif
