/*
 * wait.h - waits of threads, from the hooks to a trace.
 *
 * A wait is told when it is over; those that are not when a trace ends are looked up.
 * Signal-safe, but for what is for the tracer.
 */
#ifndef COLLECT_EVENTS_WAIT_H
#define COLLECT_EVENTS_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "trace.h"
#include "ring.h"

#define EVENTS_WAITERS_MAX 4096 /* threads whose wait can be looked up at once; 4.4 MiB, touched as used */

/* One wait, on the waiter's stack. */
struct events_wait {
	int64_t   since_ns;
	uintptr_t pc, sp, fp; /* of the hook's caller; pc is a return address */
	uint32_t  slot, turn; /* slot 0: none */
	uint8_t   reason;     /* enum trace_reason */
	bool      on;         /* a trace was open when it began */
};

/* Is a trace open that wants waits? */
bool events_wait_on(void);
/* pc, sp, fp, reason and since_ns are set.  since_ns moves on by what this takes itself. */
void events_wait_begin(struct events_wait *w);
/* One shorter than least_ns was none. */
void events_wait_end(struct events_wait *w, int64_t now_ns, int64_t least_ns);
/* The calling thread lets that one go on. */
void events_wait_wake(int32_t tid, uintptr_t pc, uintptr_t sp, uintptr_t fp);

/* The tracer: on and off.  0 or -ENOMEM. */
int  events_wait_open(void);
void events_wait_close(void); /* in a child of fork, too */
/* The waits that are not over, each as a TRACE_WAIT. */
void events_wait_look(events_ring_fn *fn, void *arg);
/* The thread has ended, by then; also a wait that it was cancelled in. */
void events_wait_gone(int32_t tid, int64_t now_ns);

#endif
