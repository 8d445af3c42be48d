/*
 * refused.h - what the kernel keeps from us, in one sentence: what, why, and the command that changes it.
 *
 *   source   profiler/outside/refused.c
 */
#ifndef OUTSIDE_REFUSED_H
#define OUTSIDE_REFUSED_H

#include <sys/types.h>

#include <component/error.h>

/* Its files below /proc and its memory; r: what was answered.  Returns -EPERM, -ESRCH or r. */
int refused_process(pid_t pid, int r, struct component_error *err);
/* Its samples. */
int refused_perf(pid_t pid, int r, struct component_error *err);

/* With this kernel.perf_event_paranoid at most, one's own processes may be sampled, without their time in the kernel. */
#define REFUSED_PARANOID_MOST 2
#define REFUSED_MLOCK_KB 4096 /* for a user, besides what a process may lock: enough for many processors */

/* The number in /proc/sys/NAME; -1: there is no such file. */
int refused_setting(const char *name);

#endif
