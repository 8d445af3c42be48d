/*
 * our_lock.h - a lock of ours that a fork takes, held by a thread of the program for a moment.
 *
 * With all signals blocked, as a handler of the program may fork: it would wait for the thread that it has interrupted,
 * and a child that goes on within the handler would wait for it for ever.  Our own threads have them blocked all the time.
 *
 *   threads  any
 *   signals  not from a handler
 *   fork     its prepare takes the lock itself, as FORK_SIGNALS has blocked signals then (fork.h)
 *   source   libcomponent/base/our_lock.c
 */
#ifndef BASE_OUR_LOCK_H
#define BASE_OUR_LOCK_H

#include <pthread.h>
#include <signal.h>

void our_lock_take(pthread_mutex_t *lock, sigset_t *ret_mask);
void our_lock_release(pthread_mutex_t *lock, const sigset_t *mask);

#endif
