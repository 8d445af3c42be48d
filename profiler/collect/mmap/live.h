/*
 * live.h - which ranges of addresses are mapped now, and where each was made.
 *
 * A place is the number that stack_counts_add() has returned, whose stack lives as long as the process,
 * or later_keep()'s.
 *
 *   threads  any; who tells of a change waits for nothing, live_copy(), live_open() and live_close() may
 *   signals  safe, but for live_copy(), live_open() and live_close()
 *   source   profiler/collect/mmap/live.c
 */
#ifndef COLLECT_MMAP_LIVE_H
#define COLLECT_MMAP_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ranges, as many as the kernel gives a process: 1.5 MiB, touched as used.  More are counted as lost. */
#define LIVE_MAX 65536

struct live_range {
	uintptr_t start, limit;
	uint32_t  place;
};

/* Called for what has grown by so many bytes, whose place that is; NULL, or waits for nobody either. */
extern void (*live_grown)(uint32_t place, size_t bytes);

/* Room for them, and none in it but what a parent has left that is mapped still.  0; -ENOMEM;
 * -EDEADLK: live_is_broken(), or the lock cannot be had. */
int      live_open(void);
void     live_close(void);

/* In a child whose fork has run no handlers: as they would have.  Signal-safe. */
void     live_forked(void);

/* After a range has come. */
void     live_add(uintptr_t start, size_t bytes, uint32_t place);
/* Before a range, or parts of some, may go: a number for what follows.  What the kernel will refuse
 * stays: no bytes, a start within a page, an end beyond all addresses. */
uint32_t live_take(uintptr_t start, size_t bytes);
/* It is gone ... */
void     live_drop(uint32_t taken);
/* ... or is here now, with so many bytes, of which it had `had`. */
void     live_put(uint32_t taken, uintptr_t start, size_t bytes, size_t had);

/* 0 in a child before live_open(): what its parent had may be gone since. */
size_t   live_count(void);
/* Is there somebody in the middle of a change who will never end it?  Then nothing is told any more. */
bool     live_is_broken(void);
/* Changes that found no room: since then the ranges are not all right. */
uint64_t live_lost(void);
/* For pages_unmap(), with its bytes; NULL and 0 where they cannot be had, as without memory
 * or in a child before live_open(). */
struct live_range *live_copy(size_t *ret_count, size_t *ret_bytes);

#endif
