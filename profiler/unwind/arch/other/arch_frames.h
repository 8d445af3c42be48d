/*
 * arch_frames.h - any other architecture: from a frame that no table describes to its caller.
 *
 * As it is where calls push the return address, and tables know signal frames and stubs.
 */
#ifndef ARCH_FRAMES_H
#define ARCH_FRAMES_H

#include "tables_lookup.h"
#include "frame.h"
#include "verdict.h"

/* The return address of an interrupted leaf that has no frame, as the verdict says; sp behind it
 * goes to *sp, where that of the leaf stands.  0: not known. */
static inline uintptr_t
arch_leaf_return(struct unwind_reader *r, const struct unwind_frame *f, unsigned verdict, uintptr_t *sp)
{
	uintptr_t ret = 0, slot = *sp + (verdict & UNWIND_VERDICT_LEAF ? 0 : sizeof(ret));

	(void)f;
	*sp = slot + sizeof(ret);
	return unwind_load(r, slot, &ret) ? ret : 0;
}

/* sp in the caller, to which ra leads: fp is the callee's frame pointer, next the caller's. */
static inline uintptr_t
arch_caller_sp(const struct tables *t, uintptr_t ra, uintptr_t fp, uintptr_t next)
{
	(void)t;
	(void)ra;
	(void)next;
	return fp + 2 * sizeof(uintptr_t);
}

/* With ARCH_SIGRETURN_BY_CODE: does the kernel's frame for the return from a handler seem to be
 * at sp? */
static inline bool
arch_is_at_sigframe(struct unwind_reader *r, const struct unwind_frame *f)
{
	(void)r;
	(void)f;
	return false;
}

/* It is: to what was interrupted. */
static inline enum unwind_step
arch_step_sigreturn(struct unwind_reader *r, struct unwind_frame *f, uintptr_t *pc)
{
	(void)r;
	(void)f;
	(void)pc;
	return UNWIND_LOST;
}

/* Out of an interrupted leaf at `at`, if that is a stub that an object calls others through, and
 * has no description. */
static inline bool
arch_step_stub(const struct unwind_reader *r, uintptr_t at, struct unwind_frame *f, uintptr_t *pc)
{
	(void)r;
	(void)at;
	(void)f;
	(void)pc;
	return false;
}

#endif
