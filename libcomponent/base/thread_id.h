/*
 * thread_id.h - the calling thread's id, without a system call.
 *
 * In the program's own threads we make no system call that glibc does not make there: a
 * seccomp filter may end the process for it.  The C library knows the id, and tells it
 * inside the number of the thread's CPU clock: ~id << 3, and what clock it is.  It writes
 * the id anew in a child of fork(); in one of the bare clone call it is the parent's.
 *
 * Tests: tests/base/test_our_thread.c, tests/whole/odd_threads.t.
 */
#ifndef BASE_THREAD_ID_H
#define BASE_THREAD_ID_H

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

/* Signal-safe; keeps errno. */
static inline pid_t
thread_id_self(void)
{
	clockid_t clock = 0;

	pthread_getcpuclockid(pthread_self(), &clock);
	return (pid_t)~((unsigned)clock >> 3 | 7U << 29);
}

#endif
