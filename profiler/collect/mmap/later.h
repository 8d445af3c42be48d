/*
 * later.h - calls whose stacks cannot be had without a wait, kept until somebody reads who may wait.
 *
 * Such a call has a place of its own (LATER_PLACE), which later_place() makes that of its stack.
 *
 *   threads  any
 *   signals  later_keep() is safe
 *   fork     a child has what its parent has kept
 *   source   profiler/collect/mmap/later.c
 */
#ifndef COLLECT_MMAP_LATER_H
#define COLLECT_MMAP_LATER_H

#include <stddef.h>
#include <stdint.h>

#include "stack_counts.h"
#include "unwind.h"

#define LATER_MAX         4096  /* calls in the life of a process; what comes beyond is not kept, ... */
#define LATER_COPIES      256   /* ... nor what comes while so many have not been walked: 2 MiB */
#define LATER_STACK_BYTES 8192  /* of each; callers above it are missing */
#define LATER_PLACE       (1U << 31) /* and the call's number: no stack has such an id */

/* Room for them; once it is there, nothing happens.  0 or -ENOMEM. */
int      later_open(void);
/* A place for the caller's call, which has mapped so many bytes; 0: no room.  Waits for nobody. */
uint32_t later_keep(const struct unwind_regs *regs, size_t bytes);
/* Walks what is kept, and counts it.  May wait. */
void     later_walk(struct stack_counts *made);
/* What a place has mapped has grown: how many bytes are to be counted at its stack now, as the rest is
 * counted when that is known. */
size_t   later_grown(uint32_t place, size_t bytes);
/* The place of its stack; 0 as long as that is not known.  Other places stay as they are. */
uint32_t later_place(uint32_t place);
/* Such calls that found no room. */
uint64_t later_not_kept(void);
/* In a child: what the parent's calls have made is not counted there. */
void     later_forked(void);

#endif
