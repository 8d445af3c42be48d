/*
 * waiters.h - who waits for which lock right now, for those who hold it.
 *
 * Fixed, lock-free, from mmap.  A waiter publishes itself before it waits and is gone
 * before its lock call returns, so no lock is ever looked at here, only its address.
 */
#ifndef COLLECT_WAITS_WAITERS_H
#define COLLECT_WAITS_WAITERS_H

#include <stdbool.h>
#include <stdint.h>

/* Whoever waits for longer is looked for when it is charged: its thread may have ended. */
#define WAITS_TABLE_LIFE_NS 100000000LL

/* A waiter that was charged to somebody is charged to the next one after so long. */
#define WAITS_TABLE_TURN_NS 1000000LL
/* In place of a stack: of a charge that was not sampled. */
#define WAITS_UNSAMPLED UINT32_MAX

/* Where a waiter stands. */
struct waits_place {
	uint32_t home;   /* the bucket of its lock */
	uint32_t bucket; /* another one if that was full */
	int32_t  bit;    /* below 0: nowhere */
};

/* Who was the last to be charged for a waiter. */
struct waits_charged {
	uint32_t stack;    /* 0: nobody; or WAITS_UNSAMPLED */
	int32_t  weight;
	int64_t  since_ns; /* what comes after has been charged to nobody */
};

/* 0 or -ENOMEM.  masks: the hooks' array of HOOKS_WAITING. */
int      waiters_open(uint64_t *masks);
/* Waits since now_ns.  tid: of the waiter.  name: of the call, enum hooks_name. */
struct waits_place waiters_publish(uintptr_t lock, int64_t now_ns, int32_t tid, uint32_t name);
/* Once for each publish, also on the way out of a cancelled wait. */
struct waits_charged waiters_withdraw(struct waits_place place);
/* After waits: component_hooks.wait_any is taken back if nobody is left.  Not each time. */
void     waiters_rest(int64_t now_ns);
/* From a thread of ours: waiters whose thread has ended, by the bare system call exit, go. */
void     waiters_sweep(int64_t now_ns);
/* Do unlocks look for waiters from now on? */
void     waiters_watch(bool on);
/* Is somebody to be charged to who unlocks now?  The time of it, or 0: nobody is. */
int64_t  waiters_due(uintptr_t lock, int64_t (*now_ns)(void));
/* Charges those to this stack.  Nanoseconds that they have waited since they came, or
 * since they were charged last. */
uint64_t waiters_charge(uintptr_t lock, int64_t now_ns, uint32_t stack, int32_t weight);
/* A reader is about to unlock, at 1; has unlocked, at -1.  How many of this lock's, and
 * perhaps of others', are about to. */
int32_t  waiters_leaving(uintptr_t lock, int32_t by);
/* Who waits longest for this lock; 0: nobody that is known. */
int32_t  waiters_first(uintptr_t lock);
/* Who waits just now, for which lock and by which call.  Any thread; waiters come and go meanwhile. */
void     waiters_each(void (*found)(void *arg, int32_t tid, uintptr_t lock, uint32_t name), void *arg);
/* Waiters that found no place: more than HOOKS_WAITING * 63 at a time. */
uint64_t waiters_crowded(void);
void     waiters_forked(void);

#endif
