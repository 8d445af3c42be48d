/*
 * thread.h - the label set of each thread, and who hears of it.
 */
#ifndef COLLECT_LABELS_THREAD_H
#define COLLECT_LABELS_THREAD_H

#include <stdint.h>
#include <sys/types.h>

#include "labels.h"
#include "profile.h"

/* The calling thread's, with a reference; 0: none.  Signal-safe. */
uint32_t labels_here(void);
/* The same without a reference, good until the thread changes them.  Signal-safe. */
uint32_t labels_peek(void);
/* Another thread's, of this moment, with a reference.  Not from handlers. */
uint32_t labels_of(pid_t tid);

/* The calling thread has none any more, as at its end. */
void     labels_thread_ending(void);

/*
 * labels_watch - have fn called whenever a thread's labels change, on that thread
 *
 * It gets what the thread has from now on, borrowed; it must not call into labels.  NULL
 * ends that: a call under way may still be at work.  One watcher at a time.
 */
typedef void labels_watch_fn(uint32_t set);
void     labels_watch(labels_watch_fn *fn);

/* What could not be labelled, as a comment; nothing while all is well. */
void     labels_comment(struct profile *p);

#endif
