/*
 * our_thread.h - threads of the library itself.
 *
 * They run SCHED_OTHER with every signal blocked, a small stack, and a name
 * "component-*"; the heap, block and mutex collectors leave them out.
 */
#ifndef BASE_OUR_THREAD_H
#define BASE_OUR_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "per_thread.h"

/* name: "component-..." of at most 15 bytes.  Returns 0 or a negative errno. */
int our_thread_start(const char *name, void *(*run)(void *), void *arg, pthread_t *ret);

/* Asks the loader now what the first our_thread_start() would ask it: other threads may hold its lock for long, or
 * wait with it for one that the caller has. */
void our_thread_prepare(void);

/* How many were made so far, and how many of them bear their name: while the numbers differ,
 * one of ours looks like the thread that made it.  Any thread, signal-safe. */
unsigned our_threads_made(void);
unsigned our_threads_named(void);

/* Is the calling thread one of ours, or just making one?  Signal-safe. */
static inline bool
our_thread_is(void)
{
	return per_thread.ours;
}
/* Is that one of ours?  And how many are there, which counts those that our_thread_has().
 * Signal-safe; a child has none. */
bool     our_thread_has(pid_t tid);
/* Is it, or was it one of the last that ended?  By now another thread may have that id. */
bool     our_thread_had(pid_t tid);
unsigned our_thread_count(void);
/* Their ids, at most max of them; returns how many.  Signal-safe. */
size_t   our_thread_ids(pid_t *ret, size_t max);
/* Waits until each that was made has begun, and is known by its id.  False: after wait_ns one was not. */
bool     our_thread_all_here(int64_t wait_ns);
/* Waits until all threads of ours have ended, which has been asked of them; and until the kernel has forgotten
 * them, too: one that was joined is still there for some microseconds.  False: after wait_ns there was one, or
 * a thread of the program that has the number of one that ended. */
bool     our_thread_all_ended(int64_t wait_ns);
bool     our_thread_all_gone(int64_t wait_ns);

/* CPU time of all threads of ours since the process began, in ns: it is not the daemon's.
 * A thread that ended by pthread_exit() counts no more. */
int64_t our_thread_cpu_ns(void);

#endif
