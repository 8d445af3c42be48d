/*
 * per_thread.h - what a sample asks of the thread that it is taken in: one thread-local variable.
 *
 * Each such variable has an entry of its own in the object's table of offsets, and between two samples
 * that entry is gone from the processor's caches.  So these have one together, and lie on one line.  Each
 * member belongs to the file that is named; nobody else writes it.
 *
 * Initial-exec: the dynamic model may allocate on first touch, and this is read in signal handlers and inside malloc.
 */
#ifndef BASE_PER_THREAD_H
#define BASE_PER_THREAD_H

#include <stdbool.h>
#include <stdint.h>

struct labels_record;

struct per_thread {
	_Alignas(32) _Atomic uint64_t own_stack; /* unwind_window.c: where it is, in one word */
	struct labels_record         *labels;    /* labels/thread.c: its record, or NULL */
	uint64_t                      fork_mask; /* fork_signals.c: that the program had, while it forks */
	bool                          ours;      /* our_thread.c: a thread of the library, or one that makes one */
	bool                          forks;     /* fork_signals.c: and fork_mask is to be restored */
};

extern __thread struct per_thread per_thread __attribute__((tls_model("initial-exec")));

#endif
