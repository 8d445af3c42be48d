/*
 * lock.c - a futex lock that a fork can see through.
 *
 * The lock word goes free -> taken -> waited for; `forking` beside it turns every
 * attempt away at once.  A mark is gone in every child, however it was made (fork_mark.h).
 *
 * What a stranger would get wrong:
 * - fork handlers of the daemon run between our prepare and our parent handler.
 *   One of them may wait for a thread which is in malloc: that thread must not
 *   wait for us.  So it is turned away, and what it has to count is put aside
 *   (heap/set.c).
 * - The forking thread may have a real-time priority and keep the holder from running.
 *   Its wait has an end: the child then has a lock that is never given back.
 * - The mask is our_mask.h's: a thread cancelled by force in here would keep the lock.
 *
 * Tests: tests/heap/test_guest.c.
 */
#include <config.h>

#include "lock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "futex.h"
#include "our_mask.h"

#define FORK_WAIT_NS 1000000L /* between looks at a lock that a fork wants */
#define FORK_WAITS   200      /* looks; who has it counts a batch of sites, some microseconds */


static _Atomic uint32_t  word;
static _Atomic uint32_t  forking; /* forks under way */
static _Atomic bool      broken;
static _Atomic pthread_t forker; /* who has it for a fork; 0: nobody */

int
heap_lock_init(void)
{
	return fork_mark_open(&heap_hot.mark);
}

bool
heap_lock(struct heap_lock_hold *h)
{
	our_mask_block(&h->signals);
	if (forking || broken)
		goto turned_away;
	if (futex_try(&word))
		return true;
	while (!futex_try_again(&word)) {
		if (forking || broken)
			goto turned_away;
		futex_wait(&word, FUTEX_WAITED_FOR, -1);
	}
	return true;
turned_away:
	our_mask_restore(&h->signals);
	return false;
}

bool
heap_lock_try(struct heap_lock_hold *h)
{
	if (forking || broken || word != FUTEX_FREE)
		return false;
	our_mask_block(&h->signals);
	if (!forking && futex_try(&word))
		return true;
	our_mask_restore(&h->signals);
	return false;
}

void
heap_unlock(const struct heap_lock_hold *h)
{
	futex_unlock(&word);
	our_mask_restore(&h->signals);
}

bool
heap_lock_is_broken(void)
{
	return broken;
}

void
heap_lock_fork_prepare(void)
{
	uint32_t state;

	atomic_fetch_add(&forking, 1);
	/* Those waiting look at `forking` when woken: all of them now. */
	futex_wake(&word, INT_MAX);
	/* Two threads may fork at once: each waits for the other's fork to be over, however long. */
	for (int i = 0; i < FORK_WAITS; i += forker == 0) {
		state = FUTEX_FREE;
		if (atomic_compare_exchange_strong(&word, &state, FUTEX_TAKEN)) {
			forker = pthread_self();
			break;
		}
		futex_wait(&word, state, FORK_WAIT_NS);
	}
}

void
heap_lock_fork_parent(void)
{
	atomic_fetch_sub(&forking, 1);
	if (forker == pthread_self()) {
		forker = 0;
		futex_unlock(&word);
	}
}

void
heap_lock_fork_child(void)
{
	if (forker != pthread_self())
		broken = true;
	forker = 0;
	forking = 0;
	word = FUTEX_FREE;
	fork_mark_set(&heap_hot.mark);
}

/* A child that ran no handlers: was anybody inside? */
void
heap_lock_fork_unseen(void)
{
	/* Our own fork has it where a handler of the daemon is called in the child before ours, and frees something. */
	if (word != FUTEX_FREE && forker != pthread_self())
		broken = true;
	word = FUTEX_FREE;
	forking = 0;
}
