/*
 * fork.h - what libcomponent does around fork(2), in one order.
 *
 * fork.c makes the library's only pthread_atfork(3).  Whoever has something to do around a
 * fork fills a slot:
 *
 *     FORK_SLOT(FORK_WINDOWS, fork_prepare, fork_parent, fork_child);
 *
 * Before the fork all `prepare` run in the order of the ranks; afterwards `parent`, or
 * `child`, in the reverse order.  A lock that is taken while another one is held has the
 * later rank.  One slot for each rank; a function may be NULL.
 *
 *   threads  the one that forks; several may fork at once
 *   signals  blocked from FORK_SIGNALS' prepare to its parent or child: see fork_signals.c.  Who takes a lock that a prepare
 *            takes as well has them blocked meanwhile (our_lock.h): a handler that forks would wait for what it has interrupted
 *   child    async-signal-safe functions only, as other threads of the program may have
 *            held any lock; errno is kept
 *   order    before the program's own handlers in parent and child, and after them in prepare:
 *            those may allocate, lock and ask for profiles.  The handlers of a library that was set up before ours
 *            run between our prepare and our parent or child.  Under the agent that is every library that the
 *            program is linked with.  Such handlers may make threads, end them and wait for them.  So a thread of
 *            the program that begins, ends or is in a hook waits for no lock that a fork holds, or only for a moment.
 *
 * What a child inherits of ours:
 *   descriptors  closed by number: our_fd.c's first, then each server's and each component's; but
 *                program_file.c's stays where a server of the child's could not open that file again.
 *                What was in a table of our own is not there, and its numbers are the program's (our_table.h)
 *   mappings     all, as copies: stacks, unwind tables, rings, counts.  What can still be right is
 *                used again, the rest is emptied.  fork_mark.h has a page that the kernel wipes, by
 *                which children of clone(2) and _Fork() are known, where nothing of this runs.
 *   timers       none; the kernel gives a child none
 *   threads      none of ours; profiling is off until component_after_fork()
 *   locks        taken by prepare and so free, or made anew
 *   handlers     of signals: they stay, and find nothing to do
 *
 * Tests: tests/base/test_fork_slots.c, tests/base/fork_handlers.t, tests/whole/stress.t.
 */
#ifndef BASE_FORK_H
#define BASE_FORK_H

#include <stdbool.h>
#include <stdint.h>

enum fork_rank {
	FORK_FOLLOW,       /* the agent's: in a child it comes when all below is as it will be */
	FORK_SIGNALS,      /* none comes from here on; afterwards they come when all below holds nothing any more */
	FORK_LIFE,         /* components and their loops: what they call opens files and takes all below */
	FORK_FRONTS,       /* servers that the program runs beside the profiler's */
	FORK_PARTS,        /* the components that have the profiling part: nothing of ours is locked with that lock held */
	FORK_SERVE,        /* the profiler's server: its child part ends what the samplers below have left */
	FORK_MOUNTS,       /* our routes on a program's own server: after the profiler's, which they lead to */
	FORK_PROFILES,     /* the program's own profiles */
	FORK_ALLOCATOR,    /* who asks the program's allocator for its figures */
	FORK_MAPPINGS,     /* of the program, which any call of mmap() changes */
	FORK_HEAP,         /* from here on the thread that forks takes no heap sample */
	FORK_THREAD_CLOCK, /* the CPU time of threads of ours that have ended */
	FORK_PROGRAM,      /* the program's file, which FORK_DESCRIPTORS has closed in a child */
	FORK_QUEUES,       /* of controllers, for whoever collects their figures */
	FORK_METRICS,      /* metrics and series that are made: nothing is called with that lock held */
	FORK_NAMES,        /* names that are kept: nothing is called with that lock held */
	FORK_WINDOWS,      /* of all collectors but the CPU's: they sample by its engine, and read its clocks */
	FORK_DUMPS,        /* of threads, with their labels */
	FORK_LABELS,
	FORK_CPU,          /* from here on threads that begin or end do without its lock */
	FORK_UNWIND,       /* no walk waits for a thread of ours any more: before locks that it needs */
	FORK_STACKS,       /* the stack table: all above may be about to add a stack */
	FORK_DESCRIPTORS,  /* last, and so the first in a child: all above may open a file */
	FORK_RANKS
};

struct fork_slot {
	enum fork_rank rank;
	void (*prepare)(void), (*parent)(void), (*child)(void);
	const char *linked; /* a static link takes fork.c for this alone */
};

/* Is the calling thread forking, and so has every signal blocked by us?  Then what it had blocked itself, the first signal
 * in bit 0: a thread that a fork handler makes is born with the mask of the one that forks. */
bool fork_signals_mask(uint64_t *ret_mask);

extern const char fork_linked;

#define FORK_SLOT(rank, prepare, parent, child) \
	/* A rank taken twice does not link. */ \
	extern const char fork_slot_of_##rank; \
	__attribute__((visibility("hidden"))) const char fork_slot_of_##rank = 0; \
	static const struct fork_slot fork_slot = { rank, prepare, parent, child, &fork_linked }; \
	static const struct fork_slot *const fork_slot_listed __attribute__((used, section("component_fork"))) = &fork_slot

#endif
