/*
 * unwind_undescribed.h - from frames that no table describes to their callers.
 *
 * All signal-safe; *pc is the caller's where the answer is UNWIND_ON or true.
 */
#ifndef STACKS_UNWIND_UNDESCRIBED_H
#define STACKS_UNWIND_UNDESCRIBED_H

#include <stdbool.h>
#include <stdint.h>

#include "tables.h"
#include "unwind_frame.h"

/* From the code at `at` by the frame pointer, and only to where a call returns to; leaf: `at`
 * is the exact pc of what was interrupted, which may have no frame.  t may be NULL. */
enum unwind_step unwind_step_fp(const struct tables *t, struct unwind_reader *r, struct unwind_frame *f, uintptr_t at,
				bool leaf, uintptr_t *pc);

#if defined(__aarch64__)
/* Is the exact pc in a stub that an object calls others through? */
bool unwind_in_stub(uintptr_t pc);
/* Out of an interrupted leaf at `at`, if that is such a stub. */
bool unwind_step_stub(uintptr_t at, struct unwind_frame *f, uintptr_t *pc);
/* Does the kernel's return from a handler begin at pc?  Then sp is at the frame it left. */
bool             unwind_is_sigreturn(uintptr_t pc);
enum unwind_step unwind_step_sigreturn(struct unwind_reader *r, struct unwind_frame *f, uintptr_t *pc);
#else
/* The tables know them. */
#define unwind_in_stub(pc)              false
#define unwind_step_stub(at, f, pc)     false
#define unwind_is_sigreturn(pc)         false
#define unwind_step_sigreturn(r, f, pc) UNWIND_LOST
#endif

#endif
