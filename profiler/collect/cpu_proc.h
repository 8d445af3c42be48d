/*
 * cpu_proc.h - what /proc tells of this process and its threads.
 *
 * No memory is allocated; descriptors are closed again and are never 0, 1 or 2.
 */
#ifndef COLLECT_CPU_PROC_H
#define COLLECT_CPU_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef void cpu_proc_thread_fn(void *arg, pid_t tid);

/* Calls fn for every thread.  0 or a negative errno. */
int  cpu_proc_threads(cpu_proc_thread_fn *fn, void *arg);
/* Does /proc number processes as we do, or is it another pid namespace's? */
bool cpu_proc_is_ours(void);
/* The signals that a thread blocks, the first in bit 0; 0: not known. */
uint64_t cpu_proc_blocked(pid_t tid);
/* The same where it blocks some of them: it may wait for those by signalfd() or sigwait(). */
uint64_t cpu_proc_wants(pid_t tid);
/* Does the thread block the signal? */
bool cpu_proc_blocks(pid_t tid, int signal_number);
/* Seccomp filters that it is under, or 1 for some where the kernel does not count; -1: not
 * to be had. */
int  cpu_proc_filters(pid_t tid);
/* Signals queued for this user, and RLIMIT_SIGPENDING.  0 or -ENOENT. */
int  cpu_proc_signals(unsigned long *ret_queued, unsigned long *ret_limit);

#endif
