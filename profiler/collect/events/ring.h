/*
 * ring.h - what hooks, handlers and the program's own annotations tell a trace,
 * on its way to component-trace.
 *
 * Nobody waits and nothing is allocated: a hooked write() in a signal handler gets here.
 */
#ifndef COLLECT_EVENTS_RING_H
#define COLLECT_EVENTS_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Emptied every 50 ms, and when it is half full: 25,000 waits with stacks of 30 frames. */
#define EVENTS_RING_BYTES ((size_t)8 << 20)
/* Rings at once, with those given up because somebody began a record and has neither ended
 * it nor itself since. */
#define EVENTS_RINGS_MAX  8

#define TRACE_EVENT_NAME_MAX 127  /* bytes of a name */
#define TRACE_EVENT_TEXT_MAX 1023 /* bytes of a message */

/* Types beside those of enum trace_type. */
enum trace_event_type {
	TRACE_EVENT_WAITED = 64, /* a wait from time_ns to value */
	TRACE_EVENT_NAME,        /* the thread is called so */
};

struct trace_event {
	uint64_t         time_ns, value, parent;
	int32_t          tid, other;
	uint8_t          type, reason, flags;
	uint16_t         cpu;
	unsigned         count;  /* of pcs */
	const uintptr_t *pcs;    /* leaf first */
	const char      *name, *text; /* NULL: ""; longer ones are cut */
	unsigned         name_size, text_size; /* bytes, set by the reading end */
};

typedef void events_ring_fn(void *arg, const struct trace_event *e);

/* 0 or -ENOMEM; -EBUSY: EVENTS_RINGS_MAX. */
int  events_ring_open(void);
/* Nothing is written any more; what is in it is gone.  Waits for who is writing, for 100 ms at most; a thread may fork
 * meanwhile. */
void events_ring_close(void);
/* In a child: there is none. */
void events_ring_forked(void);
/* A window is open: what is told from now on is in a trace.  Signal-safe. */
void events_ring_want(bool on);
bool events_ring_is_wanted(void);
/* Signal-safe, any number of threads at once, keeps errno.  False: it is lost. */
bool events_ring_add(const struct trace_event *e);
/* What was there when it was called.  One caller at a time, not from handlers.  Texts end with a NUL. */
void events_ring_drain(events_ring_fn *fn, void *arg);
/* Records lost since the ring was opened. */
uint64_t events_ring_lost(void);
/* Waits up to that long, or until the ring is half full, or events_ring_ring(). */
void events_ring_sleep(int64_t ns);
void events_ring_ring(void);

/* The calling thread's kernel id; remembered.  Signal-safe. */
int32_t trace_tid(void);
/* CLOCK_MONOTONIC.  Signal-safe. */
int64_t trace_now_ns(void);

#endif
