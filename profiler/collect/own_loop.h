/*
 * own_loop.h - a thread of ours that does something now and then, until it is stopped.
 *
 * Not a condition variable: those are hooked, and a futex needs no lock that fork would
 * have to hold.  In a child of fork there is none: zero it.
 */
#ifndef COLLECT_OWN_LOOP_H
#define COLLECT_OWN_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "futex.h"
#include "own_thread.h"

struct own_loop {
	pthread_t        thread;
	bool             started;
	_Atomic uint32_t stop; /* futex */
	void           (*wake)(void); /* NULL, or ends what else the thread sleeps in */
};

/* 0 or a negative errno.  run() goes on while own_loop_wait(), or own_loop_goes_on(), says so. */
static inline int
own_loop_start(struct own_loop *l, const char *name, void *(*run)(void *))
{
	int err;

	atomic_store(&l->stop, 0);
	err = own_thread_start(name, run, NULL, &l->thread);
	l->started = err == 0;
	return err;
}

/* Waits until it has ended.  It need not have begun. */
static inline void
own_loop_stop(struct own_loop *l)
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

static inline bool
own_loop_goes_on(const struct own_loop *l)
{
	return !atomic_load(&l->stop);
}

/* On that thread: so long, or until it is to end: false. */
static inline bool
own_loop_wait(struct own_loop *l, int64_t ns)
{
	if (own_loop_goes_on(l))
		futex_wait(&l->stop, 0, ns);
	return own_loop_goes_on(l);
}

#endif
