/*
 * previous.h - what the last dump has read, for the next one.
 */
#ifndef COLLECT_DUMP_PREVIOUS_H
#define COLLECT_DUMP_PREVIOUS_H

#include <stddef.h>
#include <stdint.h>

#include "dump.h"

#define THREADS_KEPT_MAX     32768               /* threads */
#define THREADS_KEPT_PCS_MAX ((size_t)1 << 17)   /* words: of their stacks, equal ones once */

/* A thread that was read quietly and whole. */
struct kept {
	int32_t          tid;
	int32_t          syscall;
	uint32_t         first, count; /* its stack */
	struct dump_mark mark;
	struct dump_futex futex;
	int64_t          since_ns;
};

/* All of these are called under the lock of dumps. */

/* NULL: it was not there, or not read. */
const struct kept *dump_previous_find(int32_t tid);
const uintptr_t   *dump_previous_pcs(const struct kept *k);
/* From now on what this dump has read; threads by tid, before tags are put in. */
void dump_previous_take(const struct dump *d);
void dump_previous_drop(void);
/* In a child: another thread may have been in the middle of taking, so nothing is unmapped. */
void dump_previous_forked(void);

#endif
