/*
 * slots.h - what is kept of each thread of the process while CPU profiles are taken.
 *
 * A slot has a number and belongs to one thread.  It holds the thread's grid: the moments
 * on its own CPU clock at which it is to be sampled, a period apart.
 *
 *     cpu_slots_*          of all slots: their memory, how many, the period, the walk's number
 *     cpu_slot_at          slot by number; NULL: there is none
 *     cpu_slot_find        number by thread; 0: it has no slot
 *     cpu_slot_take        a new one, idle; 0: there is no room
 *     cpu_slot_give_back   its timer is gone; the number may be another thread's at once
 *     cpu_slot_grid        lays the grid; born: it has lived while the engine ran only
 *     cpu_slot_missing     periods that have passed and neither a sample nor a sweep told
 *     cpu_slot_ended       its thread has told its end, and may not be gone yet
 *     cpu_slot_tid         whose it is now; 0: nobody's
 *     cpu_slot_uncharge    a sample came after all for what a sweep has charged: what is
 *                          left of its weight
 *     cpu_slot_expired     is it the signal of one of our timers?  Then its slot and weight
 *
 * Units: ..._ns is CPU time in ns, on the clock of the slot's thread; a weight is a number
 * of periods.
 *
 * Threads: the handler calls cpu_slot_expired(), and cpu_slot_at() through it.  These two
 * are signal-safe, for the handler may have interrupted the holder of the lock; of a slot
 * it touches atomic members alone.  All else is called under the lock of cpu.c: by
 * component-cpu, by who opens or closes a window, by a thread that begins or ends, and in
 * a forked child.
 *
 * cpu_slots_free() may be called only once no handler is at work, or in a forked child.
 * Until then a slot never moves, even where its thread is gone.
 */
#ifndef COLLECT_CPU_SLOTS_H
#define COLLECT_CPU_SLOTS_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CPU_SLOT_COOKIE 0x63707563UL /* in the upper half of a timer's value, over the slot */

enum { CPU_SLOT_IDLE = -1, CPU_SLOT_ENDED = -2 }; /* instead of a timer */

struct cpu_slot {
	_Atomic int      timer; /* the kernel's id; CPU_SLOT_IDLE; CPU_SLOT_ENDED */
	pid_t            tid;   /* 0: free */
	uint32_t         next;  /* in its bucket, or free */
	uint32_t         seen;  /* number of the walk */
	int64_t          armed_ns;     /* the thread's clock when armed */
	int64_t          first_due_ns;
	int64_t          told_ns;      /* no matter of samples: before the engine ran; ended: all */
	uint32_t         before;       /* periods used before it was armed */
	_Atomic uint32_t owed;         /* of those, not in a sample yet */
	_Atomic uint64_t delivered;    /* periods in samples */
	uint64_t         charged : 63; /* periods a sweep has charged */
	bool             shut : 1;     /* the last sweep found it so, and late: PROC_SELF_SHUT */
};

/* 0 or -ENOMEM. */
int              cpu_slots_open(int64_t period_ns);
void             cpu_slots_free(void);
/* Slots are numbered from 1 up to, and without, this. */
uint32_t         cpu_slots_end(void);
int64_t          cpu_slots_period_ns(void);
/* Number of the last walk through all threads; it is never set back. */
uint32_t         cpu_slots_walk(void);
void             cpu_slots_walk_begin(void);

struct cpu_slot *cpu_slot_at(uint32_t i);
uint32_t         cpu_slot_find(pid_t tid);
uint32_t         cpu_slot_take(pid_t tid);
void             cpu_slot_give_back(uint32_t i);
void             cpu_slot_grid(struct cpu_slot *s, int64_t cpu_ns, bool born);
uint64_t         cpu_slot_missing(const struct cpu_slot *s, int64_t cpu_ns);
pid_t            cpu_slot_tid(uint32_t i);
uint32_t         cpu_slot_uncharge(uint32_t i, uint32_t weight);
bool             cpu_slot_expired(const siginfo_t *info, uint32_t *ret_slot, uint32_t *ret_weight);

static inline bool
cpu_slot_ended(const struct cpu_slot *s)
{
	return atomic_load_explicit(&s->timer, memory_order_relaxed) == CPU_SLOT_ENDED;
}

#endif
