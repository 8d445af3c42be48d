/*
 * hooks_threads.h - the core's side of the pthread_create and thrd_create hooks.
 */
#ifndef COLLECT_HOOKS_THREADS_H
#define COLLECT_HOOKS_THREADS_H

#include <stdbool.h>

/* Who wants to hear of threads that begin and end. */
enum hooks_threads_reader {
	HOOKS_THREADS_CPU = 1,
	HOOKS_THREADS_CREATE = 2,
	HOOKS_THREADS_LABELS = 4,
	HOOKS_THREADS_TRACE = 8,
};

/*
 * hooks_threads_watch - let a collector hear of threads that begin and end
 *
 * Without hooks in the process nothing happens: /proc/self/task is looked at anyway.
 * Any thread, also in fork handlers.
 */
void hooks_threads_watch(enum hooks_threads_reader reader, bool on);
/* "" or why threads are not seen; constant. */
const char *hooks_threads_status(void);
/* Threads that were left alone because too many were being made at once. */
unsigned long hooks_threads_missed(void);

#endif
