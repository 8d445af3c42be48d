/*
 * writers.h - which threads are writing into which ring of a trace right now.
 */
#ifndef COLLECT_EVENTS_WRITERS_H
#define COLLECT_EVENTS_WRITERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TRACE_WRITERS_MAX 512 /* at once; beyond, a record is lost */

/* A writer's place: each has cache lines of its own. */
struct trace_writer {
	_Alignas(64) _Atomic int32_t tid; /* 0: free */
	_Atomic int64_t born_ns;          /* CLOCK_BOOTTIME when the thread was there already; 0: not told */
	void *_Atomic   ring;
};

/* Signal-safe.  NULL: no place is free.  Its ring is the caller's to set, and must be
 * seen to be the current one afterwards. */
struct trace_writer *events_writers_enter(void);
void events_writers_leave(struct trace_writer *w);

/* The rest is for one caller at a time, not from handlers. */
/* Places of threads that have ended in the middle of a record are free again. */
void events_writers_sweep(void);
bool events_writers_in(const void *ring);
/* Has the thread of that id, which was there at born_ns, ended? */
bool events_writers_ended(int32_t tid, int64_t born_ns);
/* The calling thread's id is asked for anew: in a child it is another. */
void events_writers_forget(void);

#endif
