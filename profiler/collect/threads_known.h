/*
 * threads_known.h - the threads of the program, where no folder of /proc lists them.
 */
#ifndef COLLECT_THREADS_KNOWN_H
#define COLLECT_THREADS_KNOWN_H

#include <sys/types.h>

#include "proc_self.h"

/* On the thread itself, as it begins and ends; no system call, no lock. */
void threads_known_begin(void);
void threads_known_end(void);

/*
 * threads_known_each - calls fn for every thread of the process that is known and alive
 *
 *   threads  one of ours; which of them come twice is nobody's
 */
void threads_known_each(proc_self_thread_fn *fn, void *arg);
/* The process is another one now. */
void threads_known_forked(void);

#endif
