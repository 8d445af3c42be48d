/*
 * timers_parts.h - what the files of the CPU timers share: a thread's slot.
 *
 * Under the lock of cpu.c, but for what the handler reads.
 */
#ifndef COLLECT_CPU_TIMERS_PARTS_H
#define COLLECT_CPU_TIMERS_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CPU_SLOT_COOKIE 0x63707563UL /* in the upper half of a timer's value, over the slot */

enum { CPU_SLOT_IDLE = -1, CPU_SLOT_ENDED = -2 }; /* instead of a timer */

struct cpu_slot {
	_Atomic int      timer; /* the kernel's id; CPU_SLOT_IDLE; CPU_SLOT_ENDED: told its end, is not gone yet */
	pid_t            tid;   /* 0: free */
	uint32_t         next;  /* in its bucket, or free */
	uint32_t         seen;  /* number of the scan */
	int64_t          armed_ns;     /* the thread's clock when armed */
	int64_t          first_due_ns;
	int64_t          told_ns;      /* of its clock, what is no matter of samples: before the engine ran; ended: all */
	uint32_t         before;       /* periods used before it was armed */
	_Atomic uint32_t owed;         /* of those, not in a sample yet */
	_Atomic uint64_t delivered;    /* periods in samples */
	uint64_t         charged;      /* periods a sweep has charged */
};

/* ---- cpu/slots.c ---- */

int              cpu_slots_open(int64_t period_ns);
void             cpu_slots_free(void);
/* Slots are numbered from 1 up to, and without, this. */
uint32_t         cpu_slots_end(void);
int64_t          cpu_slots_period_ns(void);
struct cpu_slot *cpu_slot_at(uint32_t i);
/* 0: there is none. */
uint32_t         cpu_slot_find(pid_t tid);
/* A new one, idle; 0: there is no room. */
uint32_t         cpu_slot_take(pid_t tid);
void             cpu_slot_give_back(uint32_t i);
/* Lays the thread's grid; born: it has lived while the engine ran only. */
void             cpu_slot_grid(struct cpu_slot *s, int64_t cpu_ns, bool born);
/* Periods that have passed on its grid, and no sample told. */
uint64_t         cpu_slot_missing(const struct cpu_slot *s, int64_t cpu_ns);

static inline bool
cpu_slot_ended(const struct cpu_slot *s)
{
	return atomic_load_explicit(&s->timer, memory_order_relaxed) == CPU_SLOT_ENDED;
}

/* ---- cpu/timers.c ---- */

/* 0; -EAGAIN when the signal queue has no room; -ESRCH when the thread is gone; or what
 * timer_create() says otherwise.  born: as above. */
int              cpu_slot_arm(pid_t tid, bool born);
/* Its thread is gone. */
void             cpu_slot_retire(uint32_t i);
/* CPU time that threads which are gone were charged for, since cpu_timers_open(). */
int64_t          cpu_slots_ended_ns(void);
int              cpu_slots_signal(void);

/* ---- cpu/scan.c ---- */

/* Of the last walk through all threads. */
uint32_t         cpu_scan_number(void);
void             cpu_scan_close(void);
void             cpu_scan_forked(void);

#endif
