/*
 * lock.h - the one lock of the heap collector, and what makes it harmless.
 *
 * It is taken inside malloc and free, so nothing of the daemon may run while it
 * is held: signals are blocked meanwhile (our_mask.h), and nothing under it allocates.
 *
 * A thread of the daemon's never waits for it: heap_lock_try().  It may have a real-time priority
 * and the holder none, and then the holder might not run for a long time.  Only our own
 * threads wait, and fork, for a bounded time.
 */
#ifndef COLLECT_HEAP_LOCK_H
#define COLLECT_HEAP_LOCK_H

#include <signal.h>
#include <stdbool.h>

#include "hot.h"

struct heap_lock_hold {
	sigset_t signals; /* the mask before */
};

/* Once, before the first heap_lock(): 0 or a negative errno. */
int  heap_lock_init(void);
/* False while a fork is under way, or for ever in a child whose parent was inside
 * the lock in another thread: do without. */
bool heap_lock(struct heap_lock_hold *h);
/* Also false while somebody else has it.  No system call then. */
bool heap_lock_try(struct heap_lock_hold *h);
void heap_unlock(const struct heap_lock_hold *h);
bool heap_lock_is_broken(void); /* for ever */

/* Fork handlers: prepare takes it so that all others do without, parent and child
 * give it back.  Where it is not to be had soon, the child does without. */
void heap_lock_fork_prepare(void);
void heap_lock_fork_parent(void);
void heap_lock_fork_child(void);
/* Did the calling process come out of a fork since the last time?  Also finds
 * forks that run no handlers (_Fork, a bare clone). */
static inline bool
heap_lock_is_child(void)
{
	return fork_mark_is_gone(&heap_hot.mark);
}

/* In such a child, once: if a thread of the parent was inside, heap_lock() says
 * false from now on. */
void heap_lock_fork_unseen(void);

#endif
