/*
 * clock.h - times as one number: nanoseconds of a clock.
 *
 * What is measured or waited for goes by CLOCK_MONOTONIC, which nobody sets; what a person
 * reads goes by CLOCK_REALTIME.  All of it may be called in a signal handler.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define CLOCK_NS_PER_S  INT64_C(1000000000)
#define CLOCK_NS_PER_MS INT64_C(1000000)

static inline int64_t
clock_from_timespec(const struct timespec *ts)
{
	return (int64_t)ts->tv_sec * CLOCK_NS_PER_S + ts->tv_nsec;
}

/* ns: not below 0. */
static inline struct timespec
clock_timespec(int64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / CLOCK_NS_PER_S), .tv_nsec = (long)(ns % CLOCK_NS_PER_S) };
}

/* One of the clocks that always can be read: not another thread's, nor another process's. */
static inline int64_t
clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return clock_from_timespec(&ts);
}

/* The CPU clock of a thread of this process, also for timer_create(). */
static inline clockid_t
thread_clock_id(pid_t tid)
{
	return (clockid_t)(~(unsigned)tid << 3 | 6); /* CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED */
}

/*
 * How long that thread has run, by the scheduler's account.  In ns; -1 and errno: the thread is
 * gone (EINVAL), or this must not be asked.
 *
 * The number that TID/schedstat begins with, for a tenth of the price: no file is opened.  It is
 * exact in any state of the thread, and grows whenever that has been on a processor.
 */
static inline int64_t
thread_clock_ns(pid_t tid)
{
	struct timespec ts;

	return clock_gettime(thread_clock_id(tid), &ts) < 0 ? -1 : clock_from_timespec(&ts);
}

#endif
