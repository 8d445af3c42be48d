/*
 * cpu.h - where CPU time goes, sampled by per-thread CPU timers.
 *
 * One sampler serves any number of windows.  Timers, and the small thread that
 * looks for new threads and drains the ring, exist only while a window is open.
 */
#ifndef COLLECT_CPU_CPU_H
#define COLLECT_CPU_CPU_H

#include <stdint.h>
#include <sys/types.h>

#include "profile.h"

#define CPU_HZ     100
#define CPU_HZ_MAX 1000 /* the kernel looks at CPU timers 100 to 1000 times a second */

struct cpu_window;

/* 0 or a negative errno (-EAGAIN: limits leave no timer or no thread; -EBUSY: no
 * free signal; -ENOENT: no /proc). */
int  cpu_window_open(struct cpu_window **ret);
/* Ends the window and makes its profile; frees the window. */
int  cpu_window_close(struct cpu_window *w, struct profile *ret);
void cpu_window_cancel(struct cpu_window *w);
/* From the pthread_create hook: the calling thread was just born / is about to end. */
void cpu_thread_started(void);
/* What is still owed is charged to the thread's start routine; NULL: to where it stands. */
void cpu_thread_ending_from(const void *start_routine);
/* "" or why CPU windows cannot be had or miss threads, for the index; constant. */
const char *cpu_status(void);

#endif
