/*
 * proc_self.h - what /proc tells of this process and its threads.
 *
 * No memory is allocated; descriptors are closed again and are never 0, 1 or 2.
 */
#ifndef COLLECT_PROC_SELF_H
#define COLLECT_PROC_SELF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef void proc_self_thread_fn(void *arg, pid_t tid);

/* Calls fn for every thread; where /proc does not list them, for those that are known otherwise
 * (threads_known.h).  0 or a negative errno: no descriptor or memory is left. */
int  proc_self_threads(proc_self_thread_fn *fn, void *arg);
/* The folder of this process' threads; -EXDEV: /proc numbers them as another pid namespace does; or
 * another negative errno. */
int  proc_self_tasks(void);
/* Why there is no such folder; "": there is.  Constant. */
const char *proc_self_missing(void);
/* Questions about single threads: none is answered where /proc numbers them as another pid
 * namespace does.
 * A file of the thread's folder, for our_fd_close(); -EXDEV or another negative errno. */
int  proc_self_thread_open(pid_t tid, const char *file);
/* The signals that a thread blocks, the first in bit 0; 0: not known. */
uint64_t proc_self_blocked(pid_t tid);
/* The same without waiting.  With PROC_SELF_SHUT in it: that of one in our code or glibc's, for a moment, or of one that the
 * kernel has made (io_uring's), for good. */
uint64_t proc_self_blocked_now(pid_t tid);
#define PROC_SELF_SHUT ((uint64_t)1 << 31) /* glibc's signal for cancellation, which no program blocks */
#define PROC_SELF_NAME_BYTES 16 /* of a line with its end, or of a name with its zero */
/* The thread's name; "" where it is not known. */
void proc_self_name(pid_t tid, char name[PROC_SELF_NAME_BYTES]);
/* Of proc_self_blocked(), where it blocks some of them: it may wait for those by signalfd() or sigwait(). */
uint64_t proc_self_wants(pid_t tid);
/* Does the thread block the signal? */
bool proc_self_blocks(pid_t tid, int signal_number);
/* Seccomp filters that it is under, or 1 for some where the kernel does not count; -1: not
 * to be had. */
int  proc_self_filters(pid_t tid);
/* The same of a thread's status file that stays open, and how many threads the process has; 0:
 * not to be had. */
int  proc_self_count(int fd, unsigned long *ret_threads);
/* Signals queued for this user, and RLIMIT_SIGPENDING.  0 or -ENOENT. */
int  proc_self_signals(unsigned long *ret_queued, unsigned long *ret_limit);

#endif
