/*
 * windows.h - the life of windows: the one engine under CPU profiles, wall-clock profiles and traces.
 *
 * A collector of this sort looks only as long as somebody wants to see, from the opening of a
 * window to its end.  Any number of them overlap on one source:
 *
 *     open   the first: start() and the collector's thread
 *            settle(): what was told so far goes to the windows that were open
 *            begin(w), and w is on the list
 *      ...   the thread run() tells all that are on the list
 *    so far  settle(): what was told so far goes to w; copy(w), end(copy)
 *     end    settle(): what was told so far goes to w, too
 *            end(w), and w is off the list: its owner's alone
 *            the last: the thread ends, then stop()
 *     fork   a child has no windows: forget(w) frees each
 *
 * So each thing that is told belongs to exactly the windows that were open then.
 *
 * Two locks.  `life` is held while the collector starts and stops, joining its thread included;
 * `lock` covers the list, the windows on it and the reading end of what they are told from.
 * Always in that order; handlers and hooks of waits take neither.  A fork holds `lock`.
 *
 * What a stranger would get wrong:
 * - A window that needs one of another collector opens it first and ends it last: under the
 *   locks of one none of another is opened or ended.
 * - The times are not those of the calls: a window begins when all is settled, and ends before.
 *
 *   threads  any
 *   signals  not from a handler
 *   source   profiler/collect/windows.c
 */
#ifndef COLLECT_WINDOWS_H
#define COLLECT_WINDOWS_H

#include <pthread.h>
#include <stdint.h>

#include "our_loop.h"

/* The first member of each collector's own. */
struct window {
	struct window *next;
	int64_t        time_ns;          /* UTC, when it began */
	int64_t        begin_ns, end_ns; /* monotonic */
	uint64_t       lost;             /* once it has ended: what lost() has grown by meanwhile */
};

struct windows {
	/* The collector's, for good. */
	const char *name;         /* of the thread */
	void     *(*run)(void *); /* see our_loop.h */
	/* Under life.  0 or a negative errno; err: what start() or the thread has failed with. */
	int       (*start)(void);
	void      (*stop)(int err);
	/* Under life and lock. */
	void      (*settle)(void);
	uint64_t  (*lost)(void); /* what found no room on its way to any window, since start(); NULL: 0 */
	void      (*begin)(struct window *w);
	void      (*end)(struct window *w);
	int       (*copy)(const struct window *w, struct window *to); /* 0 or a negative errno; NULL: it has none.  Forks wait for it */
	/* In a child of fork(). */
	void      (*forget)(struct window *w);
	void      (*forked)(void); /* calls windows_forked(); NULL with a fork slot of its own (cpu.c) */

	pthread_mutex_t life, lock;
	struct window  *open; /* lock: the list */
	struct our_loop loop; /* life */
};

#define WINDOWS_INIT .life = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER

/* Each window on the list, as its collector knows it: a struct type that begins with `window`. */
#define WINDOWS_EACH(type, w, all) (type *w = (type *)(all)->open; w; w = (type *)w->window.next)

/* 0, or what start() or the thread has failed with: w is still the caller's. */
int  windows_open(struct windows *all, struct window *w);
void windows_end(struct windows *all, struct window *w);
/* copy becomes what w would be if it ended now, by the collector's copy(); w stays open.  0 or what copy() has failed with. */
int  windows_so_far(struct windows *all, const struct window *w, struct window *copy);
/* Of all collectors: how many have been opened since the process began, and how many are open now. */
uint64_t windows_opened(unsigned *ret_open);
/* In a child: no thread, no windows, fresh locks. */
void windows_forked(struct windows *all);

#endif
