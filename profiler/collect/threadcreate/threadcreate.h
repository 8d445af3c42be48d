/*
 * threadcreate.h - which stacks have created the threads.
 */
#ifndef COLLECT_THREADCREATE_THREADCREATE_H
#define COLLECT_THREADCREATE_THREADCREATE_H

#include <stdint.h>
#include <sys/types.h>

/*
 * threadcreate_start - count threads that are created from now on
 *
 *   returns  0; -ENOTSUP without hooks, -ENOMEM (the collector's status() says so)
 *   threads  any, not from signal handlers
 */
int      threadcreate_start(void);
/* What was counted stays. */
void     threadcreate_stop(void);
void     threadcreate_forked(void); /* in a child; signal-safe */

/*
 * threadcreate_creator - the stack that created a thread which runs now
 *
 *   returns  an id of the stack table that stays valid as long as the process lives,
 *            without taking a reference; 0: not known (the main thread, threads made
 *            before the start or not through the hooks, too many at once)
 *   threads  any; signal-safe
 */
uint32_t threadcreate_creator(pid_t tid);

#endif
