/*
 * thread_clock.h - how long a thread of this process has run, by the scheduler's account.
 *
 * The number that TID/schedstat begins with, for a tenth of the price: no file is opened.
 * It is exact in any state of the thread, and grows whenever that has been on a processor.
 */
#ifndef COLLECT_THREAD_CLOCK_H
#define COLLECT_THREAD_CLOCK_H

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline clockid_t
thread_clock_id(pid_t tid)
{
	return (clockid_t)(~(unsigned)tid << 3 | 6); /* CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED */
}

/* In ns; -1 and errno: the thread is gone (EINVAL), or this must not be asked. */
static inline int64_t
thread_clock_ns(pid_t tid)
{
	struct timespec ts;

	if (syscall(SYS_clock_gettime, thread_clock_id(tid), &ts) < 0)
		return -1;
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

#endif
