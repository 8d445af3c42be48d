/*
 * fork_mark.h - a mark that is gone in every child, however it was made: also by _Fork() or a bare
 * clone(), for which nothing of fork.h runs.
 *
 * vfork() shares memory: its child passes as the parent, which is right.  Where the kernel refuses
 * MADV_WIPEONFORK such children go unnoticed, and the rest holds.
 *
 *   threads  fork_mark_open() one at a time, the others any
 *   signals  safe, fork_mark_open() too
 */
#ifndef BASE_FORK_MARK_H
#define BASE_FORK_MARK_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pages.h"

struct fork_mark {
	_Atomic uint32_t *_Atomic word; /* on a page of its own, which a fork wipes */
};

/* 0, also where it was open; or a negative errno. */
static inline int
fork_mark_open(struct fork_mark *m)
{
	size_t            size = (size_t)getpagesize();
	_Atomic uint32_t *page;

	if (atomic_load(&m->word))
		return 0;
	page = (_Atomic uint32_t *)pages_map(size);
	if (!page)
		return -errno;
	madvise((void *)page, size, MADV_WIPEONFORK);
	*page = 1;
	atomic_store(&m->word, page);
	return 0;
}

/* From a fork's own child handler: that has been seen. */
static inline void
fork_mark_set(struct fork_mark *m)
{
	if (atomic_load_explicit(&m->word, memory_order_relaxed))
		*m->word = 1;
}

/* Is this a child since the last time? */
static inline bool
fork_mark_is_gone(struct fork_mark *m)
{
	_Atomic uint32_t *word = atomic_load_explicit(&m->word, memory_order_relaxed);

	if (!word || atomic_load_explicit(word, memory_order_relaxed))
		return false;
	*word = 1;
	return true;
}

#endif
