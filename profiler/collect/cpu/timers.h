/*
 * timers.h - a CPU timer for every thread of the process, and the scan that finds
 * the threads: cpu/timers.c and cpu/scan.c.
 *
 * The scan arms timers, the timers fill slots (slots.h), and none calls back.  All of it
 * is called under the lock of cpu.c, but for cpu_timers_signal_number(), which the index
 * asks as well.  The handler's part is cpu_slot_expired().
 */
#ifndef COLLECT_CPU_TIMERS_H
#define COLLECT_CPU_TIMERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What the scan saw last. */
struct cpu_timers_state {
	unsigned threads;    /* of the process, ours left out */
	unsigned no_slot;    /* no timer for them, and why: */
	int      why;        /* EAGAIN: RLIMIT_SIGPENDING; else what timer_create() says */
	unsigned blocking;   /* they use CPU and block the signal */
	uint64_t overdue;    /* of what the last sweep returned: of threads that no tick has met for long */
};

/* Called for each thread that is behind: so many periods used, no signal taken. */
typedef void cpu_timers_late_fn(void *arg, uint64_t weight);

/* ---- cpu/timers.c ---- */

/* 0 or a negative errno; nothing is armed yet. */
int  cpu_timers_open(int signal_number, int64_t period_ns);
/* Deletes all timers.  Memory stays until cpu_timers_free(), for handlers at work. */
void cpu_timers_close(void);
/* In a forked child, too, which has inherited no timer. */
void cpu_timers_free(void);
/* 0, -EAGAIN when RLIMIT_SIGPENDING leaves no room for a timer, -ENOENT when that cannot
 * be read. */
int  cpu_timers_room(void);
/* 0; -EAGAIN when the signal queue has no room; -ESRCH when the thread is gone; or what
 * timer_create() says otherwise.  born: it has lived while the engine ran only. */
int  cpu_timers_arm(pid_t tid, bool born);
/* The slot's thread is gone. */
void cpu_timers_retire(uint32_t slot);
/* CPU time that threads which are gone were charged for, since cpu_timers_open(). */
int64_t cpu_timers_ended_ns(void);
/* The calling thread. */
void cpu_timers_self_add(void);
/* Periods the calling thread has used and not been charged for; its timer goes. */
uint32_t cpu_timers_self_remove(uint32_t *ret_slot);
/* Threads that have a timer. */
unsigned cpu_timers_armed(void);
/* No signal for now: deletes all timers, remembers the threads. */
void cpu_timers_silence(void);
/* Another signal from now on; nothing is counted twice or missed. */
void cpu_timers_signal(int signal_number);
/* The one they send, or sent last; 0: none yet. */
int  cpu_timers_signal_number(void);

/* ---- cpu/scan.c ---- */

/* 0 or a negative errno.
 * Arms what is new, deletes what is gone.  first: threads found now were there
 * before the window, so that what they have used already is not ours to count. */
int  cpu_timers_scan(bool first, struct cpu_timers_state *ret);
/* The same where there is something new, which is found out cheaply.  1: there was; 0; or
 * a negative errno. */
int  cpu_timers_look(struct cpu_timers_state *ret);
/* Charges threads that block the signal; reads every thread's clock.  What it returns are
 * the periods of the others that have passed, and which a signal is still to tell of. */
uint64_t cpu_timers_sweep(cpu_timers_late_fn *late, void *arg, struct cpu_timers_state *ret);
/* CPU time, in ns, of threads that nobody knows of, and of those that are gone what no
 * sample tells: to be compared with what it was when the window began.  begin: rather
 * too much than too little; else the reverse. */
int64_t cpu_timers_unseen(bool begin);
/* Closes the file that looks read; a forked child has none any more. */
void cpu_scan_close(void);
void cpu_scan_forked(void);

#endif
