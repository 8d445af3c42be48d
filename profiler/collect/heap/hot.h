/*
 * hot.h - what each sample reads first, in one line of the processor's cache.
 *
 * Between two samples the daemon's own data goes through the caches.  So a sample waits for each line of
 * ours that it reads, and next to these waits its instructions are few.  Each member belongs to the file
 * that is named; nobody else writes it.  What every sample writes is elsewhere: other threads would wait
 * for this line then.
 *
 * Our pages have left the TLB by then as well, and each that is looked up takes several reads of memory.  So the entry of a
 * block is in the page of its bucket (set.c), and both places of a trail are in one page (trails.c).  The functions that a
 * sample calls are marked hot: the linker puts these side by side.
 */
#ifndef COLLECT_HEAP_HOT_H
#define COLLECT_HEAP_HOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "fork_mark.h"

struct heap_bucket;
struct heap_entry;
struct heap_site;

struct heap_hot {
	_Alignas(64) _Atomic uint64_t rate; /* heap.c */
	struct fork_mark             mark;  /* lock.c */
	struct hooks_filter         *filter; /* set.c */
	_Atomic(struct heap_bucket *) level; /* set.c: the first one */
	_Atomic(struct heap_entry *) debtors; /* set.c */
	struct heap_site            *sites; /* site.c: the first of them */
	bool                         bound; /* bind.c */
};

_Static_assert(sizeof(struct heap_hot) == 64, "one line");

extern struct heap_hot heap_hot;

#endif
