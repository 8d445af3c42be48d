/*
 * unwind_remote.h - stacks walked by libunwind, from copies.
 *
 * The handler copies registers and the lower part of the stack, a thread of ours walks
 * the copy later: libunwind takes locks and memory, and never runs in a handler or hook.
 */
#ifndef STACKS_UNWIND_REMOTE_H
#define STACKS_UNWIND_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cfi.h"

/* Registers by their DWARF numbers, then the exact pc. */
#define UNWIND_REMOTE_WORDS (CFI_REGS + 1)
/* Of a stack, in a copy: callers above it are missing, and the stack counts as truncated. */
#define UNWIND_COPY_BYTES   ((size_t)32 << 10)

/*
 * unwind_remote_open - loads the library, once
 *
 *   returns  0; -ENOENT: it is not installed; -ENOSYS: this build has no use for it, or
 *            the library lacks a function
 *   threads  any, not from a handler
 */
int  unwind_remote_open(void);
/* From now on CPU samples are to be copies; or no more. */
void unwind_remote_use(bool on);
/* Signal-safe. */
bool unwind_remote_used(void);
/* Signal-safe: registers of the interrupted code, and how much of its stack can be copied. */
size_t unwind_remote_take(const void *ucontext, uintptr_t words[UNWIND_REMOTE_WORDS]);
/* Leaf first, callers as return address - 1.  Not from a handler; callers wait for each other. */
unsigned unwind_remote_walk(const uintptr_t words[UNWIND_REMOTE_WORDS], const uintptr_t *stack, size_t size,
			    uintptr_t *pcs, unsigned max, int *ret_truncated);
/* The same of a blocked thread, of which no more is known; fp 0: nor that. */
unsigned unwind_remote_walk_blocked(uintptr_t pc, uintptr_t sp, uintptr_t fp, const uintptr_t *stack, size_t size,
				    uintptr_t *pcs, unsigned max, int *ret_truncated);

/* In a child. */
void unwind_remote_forked(void);

#endif
