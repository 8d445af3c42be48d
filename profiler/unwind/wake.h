/*
 * wake.h - what walks ask of the thread that keeps the tables (refresh.c).
 */
#ifndef UNWIND_WAKE_H
#define UNWIND_WAKE_H

#include <stdatomic.h>
#include <stdbool.h>

/* What walks and the thread share. */
struct unwind_thread {
	atomic_uint state;   /* of enum unwind_thread_state; a futex */
	atomic_bool running, spent; /* spent: nothing is left in its purse */
	atomic_bool look;    /* at all mappings is wanted */
	atomic_uint first_owed; /* not 0: the first tables are wanted and not made yet; a futex */
};
enum unwind_thread_state { UNWIND_IDLE, UNWIND_WANTED, UNWIND_STOPPING };
extern struct unwind_thread unwind_thread;

/* ---- signal-safe ---- */

/* At most the first of many makes a system call. */
void unwind_wake(void);
/* The same where an object has come, gone or taken another's place. */
void unwind_wake_to_look(void);
/* For the verdicts that are wanted (verdict.h).  False: there is no thread, or it has nothing to spend. */
bool unwind_wake_to_judge(void);

/* ---- the first tables ---- */

static inline bool
unwind_first_is_owed(void)
{
	return atomic_load_explicit(&unwind_thread.first_owed, memory_order_relaxed) != 0;
}

/* From now on they are owed. */
void unwind_first_owe(void);
/* They are made, or nobody makes them any more: whoever waits goes on. */
void unwind_first_settle(void);
/* Has them made, and waits for it, at most WAIT_NS: from a hook, which has a sample and needs
 * its stack.  Not from a handler: whoever has one run calls unwind_ready() before. */
void unwind_first_wait(void);

#endif
