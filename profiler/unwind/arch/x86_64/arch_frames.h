/*
 * arch_frames.h - x86-64: from a frame that no table describes to its caller.
 *
 * What each name is for: arch/other/arch_frames.h.
 */
#ifndef ARCH_FRAMES_H
#define ARCH_FRAMES_H

#include "tables_lookup.h"
#include "frame.h"
#include "verdict.h"

/* The return address lies at sp, or above what the function has just pushed. */
static inline uintptr_t
arch_leaf_return(struct unwind_reader *r, const struct unwind_frame *f, unsigned verdict, uintptr_t *sp)
{
	uintptr_t ret = 0, slot = *sp + (verdict & UNWIND_VERDICT_LEAF ? 0 : sizeof(ret));

	(void)f;
	*sp = slot + sizeof(ret);
	return unwind_load(r, slot, &ret) ? ret : 0;
}

static inline uintptr_t
arch_caller_sp(const struct tables *t, uintptr_t ra, uintptr_t fp, uintptr_t next)
{
	(void)t;
	(void)ra;
	(void)next;
	return fp + 2 * sizeof(uintptr_t);
}

/* The tables know signal frames and stubs. */
static inline bool
arch_is_at_sigframe(struct unwind_reader *r, const struct unwind_frame *f)
{
	(void)r;
	(void)f;
	return false;
}

static inline enum unwind_step
arch_step_sigreturn(struct unwind_reader *r, struct unwind_frame *f, uintptr_t *pc)
{
	(void)r;
	(void)f;
	(void)pc;
	return UNWIND_LOST;
}

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
