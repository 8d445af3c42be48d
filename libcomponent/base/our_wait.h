/*
 * our_wait.h - waits of the library itself, in a thread of the daemon.
 *
 * A daemon's thread that starts the profiling server, or writes a profile, waits for our
 * threads and locks: that is no wait of the daemon's code, so the mutex and block profiles
 * leave it out (profiler/collect/waits/record.c).
 *
 * The compiler is told to include this before each file of the folders whose waits are ours
 * alone (OUR_WAITS in Makefile.am): a lock that is added there is marked as well.  Those of
 * libcomponent/ are not: who waits for a queue waits for what the daemon does.
 *
 * What a stranger would get wrong: nothing of the daemon's runs within such a wait, except
 * signal handlers, whose waits are then left out as well.
 * Tests: tests/threads/goroutine.t.
 */
#ifndef BASE_OUR_WAIT_H
#define BASE_OUR_WAIT_H

#include <config.h> /* before any header of libc's */

#include <pthread.h>

/* Above 0 while this thread waits for us. */
extern __thread int our_waits __attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline int
our_wait_end(int r)
{
	our_waits--;
	return r;
}

#define OUR_WAIT(call) (our_waits++, our_wait_end(call))

#define pthread_mutex_lock(mutex)                   OUR_WAIT((pthread_mutex_lock)(mutex))
#define pthread_cond_wait(cond, mutex)              OUR_WAIT((pthread_cond_wait)(cond, mutex))
#define pthread_cond_timedwait(cond, mutex, until)  OUR_WAIT((pthread_cond_timedwait)(cond, mutex, until))
#define pthread_join(thread, result)                OUR_WAIT((pthread_join)(thread, result))
#define pthread_once(once, routine)                 OUR_WAIT((pthread_once)(once, routine))

#endif
