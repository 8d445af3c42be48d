/*
 * futex.h - a word that threads wait on, and a lock that is one such word.
 *
 * Why not pthread's: those are hooked, and may be used neither in a signal handler nor inside malloc;
 * a condition variable needs a lock that fork would have to hold.  All of this keeps errno and may be
 * called in a handler.  A word belongs to one process: a child of fork sets it anew.
 */
#ifndef BASE_FUTEX_H
#define BASE_FUTEX_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

/* Until it is woken, or for ns; negative: without end.  False: the time is over.  It may return
 * true for no reason. */
static inline bool
futex_wait(_Atomic uint32_t *word, uint32_t while_it_is, int64_t ns)
{
	struct timespec left = clock_timespec(ns < 0 ? 0 : ns);
	int             saved = errno;
	bool            over;

	over = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_it_is, ns < 0 ? NULL : &left, NULL, 0) < 0 &&
	       errno == ETIMEDOUT;
	errno = saved;
	return !over;
}

/* So many of those who wait; INT_MAX: all. */
static inline void
futex_wake(_Atomic uint32_t *word, int count)
{
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
	errno = saved;
}

/* ---- a lock ---- */

/* Who waits sets the third and is woken. */
enum { FUTEX_FREE, FUTEX_TAKEN, FUTEX_WAITED_FOR };

static inline bool
futex_try(_Atomic uint32_t *word)
{
	uint32_t state = FUTEX_FREE;

	return atomic_compare_exchange_strong(word, &state, FUTEX_TAKEN);
}

/* Taken after a try in vain?  If not, wait on the word while it is FUTEX_WAITED_FOR, and ask again. */
static inline bool
futex_try_again(_Atomic uint32_t *word)
{
	return atomic_exchange(word, FUTEX_WAITED_FOR) == FUTEX_FREE;
}

static inline void
futex_unlock(_Atomic uint32_t *word)
{
	if (atomic_exchange(word, FUTEX_FREE) == FUTEX_WAITED_FOR)
		futex_wake(word, 1);
}

#endif
