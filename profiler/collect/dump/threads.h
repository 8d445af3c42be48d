/*
 * threads.h - every thread of the process and where it stands.
 *
 * A blocked thread is read without its noticing; only running ones, and those whose
 * stack cannot be told so, get a signal.  One dump at a time, others wait.
 *
 *   memory   mmap only: neither malloc nor the loader's lock is entered
 *   threads  any but the daemon's own while it holds what we take a thread for
 *   signals  not from a handler
 *   fork     a dump under way does not go on in the child
 *   source   profiler/collect/dump/threads.c
 */
#ifndef COLLECT_DUMP_THREADS_H
#define COLLECT_DUMP_THREADS_H

#include "dump.h"

#define THREADS_MAX 131072 /* threads of one dump; more are left out; a dump does not say so */

/* What a dump is to have. */
enum threads_want {
	THREADS_OWN = 1,   /* threads of ours, too */
	THREADS_NAMES = 2, /* of all: else only of those that gave no stack, which is cheaper */
	THREADS_KEEP = 4,  /* what is read is kept for the next one, see dump/previous.h */
	THREADS_REMOTE = 8, /* by libunwind, if that is chosen: enters malloc, so not where all may hang */
	THREADS_LOCKS = 16, /* who waits for whom, see dump/locks.h */
	THREADS_OWN_LAST = 32, /* threads of ours come last, the dumping one too */
};

/* 0 or a negative errno: /proc cannot be read, no memory, or another dump hangs. */
int  threads_dump_of(struct dump *ret, unsigned want);
/* With names, and nothing kept. */
int  threads_dump(struct dump *ret, bool own);
/* Gives back what dumps have kept. */
void threads_forget(void);
size_t threads_count(void);

/* The clock that minutes are told by: monotonic, unless a test brings its own. */
extern int64_t (*threads_clock_ns)(void);

/* By its number, among those from `first` on, which are in that order; NULL: it is not there. */
static inline struct dump_thread *
threads_find(const struct dump *d, size_t first, int32_t tid)
{
	size_t low = first, high = d->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (d->threads[middle].tid == tid)
			return &d->threads[middle];
		if (d->threads[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Behind the other stacks of the dump; 0 or -ENOMEM.  Any thread. */
int threads_dump_append(struct dump *d, const uintptr_t *pcs, uint32_t count, uint32_t *ret_first);

#endif
