/*
 * ring.h - samples on their way from signal handlers to component-cpu.
 */
#ifndef COLLECT_CPU_RING_H
#define COLLECT_CPU_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At 100 Hz, emptied every 50 ms, this holds the deepest stacks of some 190 busy
 * processors, or ordinary ones (30 frames) of 750; emptied each second, of 9 and 37. */
#define CPU_RING_BYTES (1 << 20)
/* With copies of stacks instead, 100 busy processors. */
#define CPU_RING_COPY_BYTES (16 << 20)

struct cpu_sample {
	uint32_t         slot;   /* of the thread, see cpu/slots.h */
	uint32_t         weight; /* periods that passed */
	uint32_t         labels; /* label set, one reference held */
	const uintptr_t *pcs;
	unsigned         count;
	bool             truncated;
	bool             copy; /* pcs are registers, then words of the stack: unwind.h */
};

typedef void cpu_ring_fn(void *arg, const struct cpu_sample *s);

/* 0 or -ENOMEM. */
int  cpu_ring_open(void);
/* Nobody may be adding any more. */
void cpu_ring_close(void);
/* Signal-safe, any number of threads at once.  Without room the
 * weight is lost, and the answer false: the reference of the labels is the caller's still. */
bool cpu_ring_add(const struct cpu_sample *s);
/* The same with so many bytes of memory behind the sample's words. */
bool cpu_ring_add_copy(const struct cpu_sample *s, uintptr_t stack, size_t bytes);
/* One caller at a time, not from handlers. */
void cpu_ring_drain(cpu_ring_fn *fn, void *arg);
/* How long an empty ring surely has room for so many samples a second, each with the deepest stack. */
int64_t cpu_ring_holds_ns(uint64_t per_second);
/* Bytes that wait to be drained. */
uint64_t cpu_ring_used(void);
/* Weights lost since the ring was opened. */
uint64_t cpu_ring_lost(void);
/* Since the process began. */
uint64_t cpu_ring_lost_ever(void);

#endif
