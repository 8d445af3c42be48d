/*
 * signal.h - asks threads for their stacks by a signal, all at once.
 */
#ifndef COLLECT_DUMP_SIGNAL_H
#define COLLECT_DUMP_SIGNAL_H

#include <stddef.h>
#include <stdint.h>

#include "stack_table.h"

enum threads_answer { THREADS_ASKED, THREADS_WRITING, THREADS_ANSWERED, THREADS_GIVEN_UP };

/* One thread that is asked. */
struct threads_slot {
	int32_t          tid;
	_Atomic uint32_t answer; /* enum threads_answer */
	uint32_t         count;
	uint32_t         truncated;
	uint32_t         took_ns; /* in the handler */
	uint32_t         index;   /* the caller's */
	uint32_t         labels;  /* with a reference; taken out by setting it to 0 */
	uintptr_t        pcs[STACK_FRAMES_MAX];
};

struct threads_request;

/* Room for so many; tid and index of slots are the caller's to fill, by ascending tid. */
int  threads_request_new(size_t count, struct threads_request **ret);
struct threads_slot *threads_request_slots(struct threads_request *q);
/* There are fewer. */
void threads_request_cut(struct threads_request *q, size_t count);
/*
 * Sends all, and waits until each has answered or the deadline has passed.  The
 * others are THREADS_GIVEN_UP.  -EBUSY: there is no signal to be had.
 */
int  threads_request_run(struct threads_request *q);
void threads_request_free(struct threads_request *q);
/* In a forked child. */
void threads_signal_forked(void);

#endif
