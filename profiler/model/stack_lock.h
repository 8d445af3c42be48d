/*
 * stack_lock.h - a lock that may be wanted inside malloc.
 */
#ifndef MODEL_STACK_LOCK_H
#define MODEL_STACK_LOCK_H

#include <stdbool.h>

/* Who finds the lock taken gives up after so long; long against a preempted
 * holder's time slice, short against what a person would call a hang. */
#define STACK_LOCK_WAIT_NS 50000000L
/* Neither in malloc nor in a handler: long against a queue of threads on a busy machine. */
#define STACK_LOCK_PATIENT_NS 2000000000L
/* A fork waits longer: without the lock its child has no stacks ever after. */
#define STACK_LOCK_FORK_NS 500000000L

/* As long as a holder takes who runs on another processor, some hundred looks, and never asleep: where
 * locks of the program may be held, for which the holder's own thread might wait. */
#define STACK_LOCK_AT_ONCE (-1)

/* False: not taken, for this thread is inside already, or in vain for wait_ns; with 0 after one look, and after one look, too,
 * where another has waited as long in vain and nobody has given it back since. */
bool stack_lock_take(long wait_ns);
void stack_lock_release(void);
/* Around a fork: taken if it can be. */
void stack_lock_fork_prepare(void);
bool stack_lock_fork_holds(void); /* the calling thread, since prepare */
/* Gives it up in the child; false: it was another thread's, in the middle of something. */
bool stack_lock_fork_child(void);

#endif
