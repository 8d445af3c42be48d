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

/* Calls fn for every thread; where /proc does not list them, for those that are known otherwise
 * (threads_known.h).  0 or a negative errno: no descriptor or memory is left. */
int  cpu_proc_threads(cpu_proc_thread_fn *fn, void *arg);
/* The folder of this process' threads; -EXDEV: /proc numbers them as another pid namespace does; or
 * another negative errno. */
int  cpu_proc_tasks(void);
/* Why there is no such folder; "": there is.  Constant. */
const char *cpu_proc_missing(void);
/* Questions about single threads: none is answered where /proc numbers them as another pid
 * namespace does.
 * A file of the thread's folder, for own_fd_close(); -EXDEV or another negative errno. */
int  cpu_proc_thread_open(pid_t tid, const char *file);
/* The signals that a thread blocks, the first in bit 0; 0: not known. */
uint64_t cpu_proc_blocked(pid_t tid);
/* The same without waiting: 0 also of one that is in our code or glibc's for a moment. */
uint64_t cpu_proc_blocked_now(pid_t tid);
#define CPU_PROC_NAME_BYTES 16 /* of a line with its end, or of a name with its zero */
/* The thread's name; "" where it is not known. */
void cpu_proc_name(pid_t tid, char name[CPU_PROC_NAME_BYTES]);
/* Of cpu_proc_blocked(), where it blocks some of them: it may wait for those by signalfd() or sigwait(). */
uint64_t cpu_proc_wants(pid_t tid);
/* Does the thread block the signal? */
bool cpu_proc_blocks(pid_t tid, int signal_number);
/* Seccomp filters that it is under, or 1 for some where the kernel does not count; -1: not
 * to be had. */
int  cpu_proc_filters(pid_t tid);
/* The same of a thread's status file that stays open, and how many threads the process has; 0:
 * not to be had. */
int  cpu_proc_count(int fd, unsigned long *ret_threads);
/* Signals queued for this user, and RLIMIT_SIGPENDING.  0 or -ENOENT. */
int  cpu_proc_signals(unsigned long *ret_queued, unsigned long *ret_limit);

#endif
