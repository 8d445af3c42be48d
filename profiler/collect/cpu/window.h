/*
 * window.h - what one window has counted, and the profile it becomes.
 *
 * Memory is from mmap.
 */
#ifndef COLLECT_CPU_WINDOW_H
#define COLLECT_CPU_WINDOW_H

#include <stdint.h>

#include "cpu_sampler.h"

/* NULL without memory. */
struct cpu_window *cpu_window_new(void);
/* What is in one, also in another that is new.  0 or -ENOMEM. */
int  cpu_window_copy(const struct cpu_window *w, struct cpu_window *to);
/* Gives the references of its stacks back. */
void cpu_window_free(struct cpu_window *w);
/* In a child: window_counts_forget(). */
void cpu_window_forget(struct cpu_window *w);
/* Borrows the references of stack and labels, takes some of its own where it needs them. */
void cpu_window_count(struct cpu_window *w, uint32_t tid, uint32_t stack, uint32_t labels, uint64_t periods);
/* 0 or -ENOMEM. */
int  cpu_window_profile(const struct cpu_window *w, struct profile *ret);

#endif
