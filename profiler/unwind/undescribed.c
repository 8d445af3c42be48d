/*
 * undescribed.c - from frames that no table describes to their callers.
 *
 *     code without a table       its frame pointer, if that leads to where a call returns to;
 *                                a leaf before or after its frame: where the stack pointer is
 *     on aarch64:
 *     a stub of a linker         the caller is in x30: stubs call nothing
 *     the return from a handler  the registers of what was interrupted are in the kernel's frame
 *
 * What a stranger would get wrong:
 * - What a word leads to is judged by another thread (verdict.c).  Until it has been,
 *   the walk goes on by a guess, which is proven or cut off before anybody is shown it.
 * - A leaf interrupted before its frame is made, or after it is undone, hides its caller.
 *   Only instructions that leave no doubt are looked at; a wrong frame is worse than a
 *   missing one.
 * - On aarch64 linkers write no .eh_frame for the stubs through which an object calls
 *   others, where on x86-64 they do.  A walk by frame pointers would leave out the caller
 *   of such a leaf, as that is in no frame yet.
 * - Linux 5.8 had wrong rules for its return from a handler, others have none: so its
 *   instructions are looked for.
 * - Where sp was in the caller follows from the frame pointer on x86-64 alone: on aarch64 the
 *   two saved words lie anywhere in their frame, mostly at its bottom.  There the caller's
 *   own rules tell.
 * - A stub is known by all of its instructions, from the address of a slot to the jump
 *   there; the jump alone may be any.  The first stub of an object pushes two registers.
 *
 * Tests: tests/unwind/test_step.c, tests/unwind/test_tables.c.
 */
#include <config.h>

#include "undescribed.h"

#include "arch_frames.h"
#include "tables_lookup.h"
#include "verdict.h"
#include "want.h"

#define NEAR_BYTES ((uintptr_t)16 << 20) /* most code of one object, or of one compiler */

/* ---- a leaf without a frame ---- */

/* The return address of an interrupted leaf that has no frame, and sp behind it; 0 when it
 * has one or when that is not certain. */
static uintptr_t
leaf_return_address(struct unwind_reader *r, const struct unwind_frame *f, unsigned verdict, uintptr_t *sp)
{
	*sp = f->regs[CFI_REG_SP];
	if (!(verdict & (UNWIND_VERDICT_LEAF | UNWIND_VERDICT_LEAF_NEXT)))
		return 0;
	return arch_leaf_return(r, f, verdict, sp);
}

/* ---- a frame ---- */

/* In code that no look has seen yet callers may be as new, if they are near. */
static enum tables_answer
is_caller(const struct tables *t, uintptr_t at, uintptr_t ra)
{
	enum tables_answer is = tables_is_return(t, ra);

	if (is == TABLES_NO && t && ra - at + NEAR_BYTES < 2 * NEAR_BYTES && !tables_is_code(t, at))
		is = tables_looks_return(ra);
	return is;
}

enum unwind_step
unwind_step_fp(const struct tables *t, struct unwind_reader *r, struct unwind_frame *f, uintptr_t at, bool leaf, uintptr_t *pc)
{
	uintptr_t          fp = f->regs[CFI_REG_FP], sp = f->regs[CFI_REG_SP], next, ra;
	enum tables_answer is;
	unsigned           verdict;

	if (leaf && (!r->copy || r->interrupted)) {
		verdict = unwind_verdict_at(r, at);
		if (!verdict) {
			unwind_unsure(r);
			return UNWIND_LOST;
		}
		ra = arch_pointer_strip(leaf_return_address(r, f, verdict, &sp));
		is = ra ? is_caller(t, at, ra) : TABLES_NO;
		if (is != TABLES_NO) {
			f->known &= (uint64_t)1 << CFI_REG_FP;
			unwind_frame_set(f, CFI_REG_SP, sp);
			*pc = ra;
			return is == TABLES_YES ? UNWIND_ON : UNWIND_GUESS;
		}
		sp = f->regs[CFI_REG_SP];
	}
	if (!UNWIND_KNOWN(f, CFI_REG_FP) || fp < sp || fp - sp > UNWIND_FRAME_BYTES_MAX)
		return UNWIND_LOST;
	if (!unwind_load(r, fp, &next) || !unwind_load(r, fp + sizeof(uintptr_t), &ra))
		return UNWIND_LOST;
	ra = arch_pointer_strip(ra);
	is = is_caller(t, at, ra);
	if (is == TABLES_NO) {
		if (t && unwind_code_plausible(ra) && !tables_is_code(t, ra - 1))
			unwind_want(ra - 1);
		/* By the ABI the first frame's saved pointer is 0; no call leads to where Go's begin. */
		return next == 0 && t && unwind_code_plausible(ra) && tables_is_code(t, ra) ? UNWIND_ROOT : UNWIND_LOST;
	}
	f->known = 0;
	unwind_frame_set(f, CFI_REG_SP, arch_caller_sp(t, ra, fp, next));
	unwind_frame_set(f, CFI_REG_FP, next);
	*pc = ra;
	return is == TABLES_YES ? UNWIND_ON : UNWIND_GUESS;
}
