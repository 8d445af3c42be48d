/*
 * remote.h - stacks of a dump, walked once more by libunwind.
 */
#ifndef COLLECT_DUMP_REMOTE_H
#define COLLECT_DUMP_REMOTE_H

#include <stddef.h>
#include <stdint.h>

#include "dump.h"
#include "quiet.h"

#define THREADS_COPIES_BYTES ((size_t)64 << 20) /* of stacks; the others keep the tables' walk */

struct threads_copies {
	char  *bytes; /* NULL: none are taken */
	size_t used, count;
};

/* Room for them, if libunwind is what walks; none is no error. */
void threads_copies_open(struct threads_copies *c);
/* What quiet_read() has just read of this thread. */
void threads_copies_add(struct threads_copies *c, const struct quiet *q, int32_t tid);
/* Walks them, and gives the room back.  Not under the lock of dumps, since libunwind takes
 * memory from malloc. */
void threads_copies_walk(struct threads_copies *c, struct dump *d);

#endif
