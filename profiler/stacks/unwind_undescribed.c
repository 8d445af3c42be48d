/*
 * unwind_undescribed.c - from frames that no table describes to their callers.
 *
 *     code without a table       its frame pointer, if that leads to where a call returns to;
 *                                a leaf before or after its frame: where the stack pointer is
 *     on aarch64:
 *     a stub of a linker         the caller is in x30: stubs call nothing
 *     the return from a handler  the registers of what was interrupted are in the kernel's frame
 *
 * What a stranger would get wrong:
 * - What a word leads to is judged by another thread (unwind_verdict.c).  Until it has been,
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
 * Tests: tests/test_unwind_step.c, tests/test_unwind_tables.c.
 */
#include <config.h>

#include "unwind_undescribed.h"

#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

#include "tables_lookup.h"
#include "unwind_tables.h"
#include "unwind_verdict.h"

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
#if defined(__x86_64__)
	uintptr_t ret = 0, slot = *sp + (verdict & UNWIND_VERDICT_LEAF ? 0 : sizeof(ret));

	*sp = slot + sizeof(ret);
	return unwind_load(r, slot, &ret) ? ret : 0;
#else
	(void)r;
	return UNWIND_KNOWN(f, CFI_REG_RA) ? f->regs[CFI_REG_RA] : 0;
#endif
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

/* sp in the caller, to which ra leads: fp is the callee's frame pointer, next the caller's. */
#if defined(__aarch64__)
static uintptr_t
caller_sp(const struct tables *t, uintptr_t ra, uintptr_t fp, uintptr_t next)
{
	uint32_t              code = t ? tables_code(t, ra - 1) : TABLES_CODE_NONE;
	uintptr_t             least = fp + 2 * sizeof(uintptr_t), sp = least;
	const struct cfi_row *row;

	/* x29 points to where the caller has saved its own caller's. */
	if (TABLES_CODE_KIND(code) == TABLES_CODE_PLAIN && !(code & TABLES_CODE_FROM_FP) && TABLES_FIELD(code, FP) != 0) {
		sp = next + TABLES_FIELD(code, FP) - TABLES_FIELD(code, CFA);
	} else if (TABLES_CODE_KIND(code) == TABLES_CODE_PALETTE) {
		row = tables_palette_row(TABLES_CODE_ROW(code));
		if (row->cfa.kind == CFI_REGISTER && row->cfa.reg == CFI_REG_SP && row->fp.kind == CFI_AT_CFA)
			sp = next - (uintptr_t)(intptr_t)row->fp.offset - (uintptr_t)(intptr_t)row->cfa.offset;
	}
	return sp >= least && sp <= next ? sp : least;
}
#else
static uintptr_t
caller_sp(const struct tables *t, uintptr_t ra, uintptr_t fp, uintptr_t next)
{
	(void)t;
	(void)ra;
	(void)next;
	return fp + 2 * sizeof(uintptr_t);
}
#endif

enum unwind_step
unwind_step_fp(const struct tables *t, struct unwind_reader *r, struct unwind_frame *f, uintptr_t at, bool leaf, uintptr_t *pc)
{
	uintptr_t          fp = f->regs[CFI_REG_FP], sp = f->regs[CFI_REG_SP], next, ra;
	enum tables_answer is;
	unsigned           verdict;

	if (leaf && !r->copy) {
		verdict = unwind_verdict_at(r, at);
		if (!verdict) {
			unwind_unsure(r);
			return UNWIND_LOST;
		}
		ra = unwind_pointer_strip(leaf_return_address(r, f, verdict, &sp));
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
	ra = unwind_pointer_strip(ra);
	is = is_caller(t, at, ra);
	if (is == TABLES_NO) {
		if (t && unwind_code_plausible(ra) && !tables_is_code(t, ra - 1))
			unwind_refresh_want(ra - 1);
		return UNWIND_LOST;
	}
	f->known = 0;
	unwind_frame_set(f, CFI_REG_SP, caller_sp(t, ra, fp, next));
	unwind_frame_set(f, CFI_REG_FP, next);
	*pc = ra;
	return is == TABLES_YES ? UNWIND_ON : UNWIND_GUESS;
}

#if defined(__aarch64__)

/* sp is at struct rt_sigframe then, a siginfo_t and a ucontext_t: these are followed by the
 * floating point registers, with their magic number and size. */
bool
unwind_is_at_sigframe(struct unwind_reader *r, const struct unwind_frame *f)
{
	uintptr_t at = f->regs[CFI_REG_SP] + sizeof(siginfo_t) + offsetof(ucontext_t, uc_mcontext.__reserved), value;

	return unwind_load(r, at, &value) && value == (sizeof(struct fpsimd_context) << 32 | FPSIMD_MAGIC);
}

/* From the kernel's return from a handler to what was interrupted. */
enum unwind_step
unwind_step_sigreturn(struct unwind_reader *r, struct unwind_frame *f, uintptr_t *pc)
{
	uintptr_t uc = f->regs[CFI_REG_SP] + sizeof(siginfo_t), value;

	f->known = 0;
	for (unsigned i = 0; i < 31; i++) {
		if (!unwind_load(r, uc + offsetof(ucontext_t, uc_mcontext.regs) + i * sizeof(value), &value))
			return UNWIND_LOST;
		unwind_frame_set(f, i, value);
	}
	if (!unwind_load(r, uc + offsetof(ucontext_t, uc_mcontext.sp), &value))
		return UNWIND_LOST;
	unwind_frame_set(f, CFI_REG_SP, value);
	if (!unwind_load(r, uc + offsetof(ucontext_t, uc_mcontext.pc), &value) || !unwind_code_plausible(value))
		return UNWIND_LOST;
	*pc = value;
	return UNWIND_ON;
}

bool
unwind_step_stub(const struct unwind_reader *r, uintptr_t at, struct unwind_frame *f, uintptr_t *pc)
{
	unsigned  verdict = unwind_verdict_at(r, at);
	uintptr_t ra;

	if (!(verdict & UNWIND_VERDICT_STUB) || !UNWIND_KNOWN(f, CFI_REG_RA))
		return false;
	ra = unwind_pointer_strip(f->regs[CFI_REG_RA]);
	if (!unwind_code_plausible(ra))
		return false;
	f->regs[CFI_REG_SP] += verdict & UNWIND_VERDICT_PUSHED ? 16 : 0;
	f->known &= (uint64_t)1 << CFI_REG_SP | (uint64_t)1 << CFI_REG_FP | (uint64_t)1 << CFI_REG_BASE;
	*pc = ra;
	return true;
}

#endif
