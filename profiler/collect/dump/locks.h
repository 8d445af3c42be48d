/*
 * locks.h - which lock each thread of a dump waits for, and who holds it.
 */
#ifndef COLLECT_DUMP_LOCKS_H
#define COLLECT_DUMP_LOCKS_H

#include <stdbool.h>

#include "dump.h"
#include "quiet.h"

/*
 * locks_find - sets `lock` of each thread that is known to wait for one, and counts cycles
 *
 *   d        threads by tid, just read by q
 *   named    holders get their names
 *   threads  one at a time: under the lock of dumps
 */
void locks_find(struct dump *d, struct quiet *q, bool named);
/* Around a fork, on the thread that forks. */
void locks_prepare(void);
void locks_forked(void);

#endif
