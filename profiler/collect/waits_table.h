/*
 * waits_table.h - who waits for which lock right now, for those who hold it.
 *
 * Fixed, lock-free, from mmap.  A waiter publishes itself before it waits and is gone
 * before its lock call returns, so no lock is ever looked at here, only its address.
 */
#ifndef COLLECT_WAITS_TABLE_H
#define COLLECT_WAITS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Whoever waits for longer is looked for when it is charged: its thread may have ended. */
#define WAITS_TABLE_LIFE_NS 100000000LL

/* Where a waiter stands. */
struct waits_place {
	uint32_t bucket;
	int32_t  bit; /* below 0: nowhere */
};

/* 0 or -ENOMEM.  masks: the hooks' array of HOOKS_WAITING. */
int      waits_table_open(uint64_t *masks);
/* Waits since now_ns.  A full bucket (64 waiters) is counted, and answered all the same.
 * tid: of the waiter. */
struct waits_place waits_table_publish(uintptr_t lock, int64_t now_ns, int32_t tid);
/* Once for each publish, also on the way out of a cancelled wait. */
void     waits_table_withdraw(struct waits_place place);
/* After waits: component_hooks.wait_any is taken back if nobody is left.  Not each time. */
void     waits_table_rest(int64_t now_ns);
/* Do unlocks look for waiters from now on? */
void     waits_table_watch(bool on);
/* Nanoseconds that those who wait for this lock have waited since they came, or since
 * they were charged last; charged now.  0: nobody. */
uint64_t waits_table_charge(uintptr_t lock, int64_t (*clock_ns)(void));
/* Who waits longest for this lock; 0: nobody that is known. */
int32_t  waits_table_first(uintptr_t lock);
/* Waiters that found their bucket full. */
uint64_t waits_table_crowded(void);
void     waits_table_forked(void);

#endif
