/*
 * our_loop.h - a thread of ours that does something now and then, until it is stopped.
 *
 * Not a condition variable: those are hooked, and a futex needs no lock that fork would
 * have to hold.  In a child of fork there is none: zero it.
 */
#ifndef COLLECT_OUR_LOOP_H
#define COLLECT_OUR_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "futex.h"
#include "our_thread.h"

struct our_loop {
	pthread_t        thread;
	bool             started;
	_Atomic uint32_t stop; /* futex */
	void           (*wake)(void); /* NULL, or ends what else the thread sleeps in */
};

/* 0 or a negative errno.  run() goes on while our_loop_wait(), or our_loop_goes_on(), says so. */
static inline int
our_loop_start(struct our_loop *l, const char *name, void *(*run)(void *))
{
	int err;

	atomic_store(&l->stop, 0);
	err = our_thread_start(name, run, NULL, &l->thread);
	l->started = err == 0;
	return err;
}

/* Waits until it has ended.  It need not have begun. */
static inline void
our_loop_stop(struct our_loop *l)
{
	if (!l->started)
		return;
	atomic_store(&l->stop, 1);
	futex_wake(&l->stop, 1);
	if (l->wake)
		l->wake();
	pthread_join(l->thread, NULL);
	l->started = false;
}

/* Its wait is over now.  Signal-safe. */
static inline void
our_loop_hurry(struct our_loop *l)
{
	futex_wake(&l->stop, 1);
}

static inline bool
our_loop_goes_on(const struct our_loop *l)
{
	return !atomic_load(&l->stop);
}

/* On that thread: so long, or less after our_loop_hurry(), or until it is to end: false. */
static inline bool
our_loop_wait(struct our_loop *l, int64_t ns)
{
	if (our_loop_goes_on(l))
		futex_wait(&l->stop, 0, ns);
	return our_loop_goes_on(l);
}

#endif
