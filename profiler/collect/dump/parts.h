/*
 * parts.h - what the files of a dump share, and what its tests reach for.
 *
 * Under the lock of dumps, but for threads_dump_append().
 */
#ifndef COLLECT_DUMP_PARTS_H
#define COLLECT_DUMP_PARTS_H

#include <stdint.h>

#include "dump.h"

/* ---- dump/threads.c ---- */

/* The clock that minutes are told by: monotonic, unless a test brings its own. */
extern int64_t (*threads_clock_ns)(void);

/* ---- dump/list.c ---- */

/* All threads there are; 0 or a negative errno. */
int  threads_list(struct dump *d);

/* ---- dump/threads_dump.c ---- */

/* Stacks of the dump before are no more. */
void threads_dump_begin(void);
/* These return 0 or -ENOMEM.  More threads than THREADS_MAX are left out. */
int  threads_dump_add(struct dump *d, int32_t tid);
int  threads_dump_append(struct dump *d, const uintptr_t *pcs, uint32_t count, uint32_t *ret_first);
/* t->count words are its stack; without memory it has none. */
int  threads_dump_stack(struct dump *d, struct dump_thread *t, const uintptr_t *pcs);

#endif
