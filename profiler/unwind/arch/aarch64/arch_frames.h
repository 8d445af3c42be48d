/*
 * arch_frames.h - aarch64: from a frame that no table describes to its caller.
 *
 * What each name is for: arch/other/arch_frames.h.
 */
#ifndef ARCH_FRAMES_H
#define ARCH_FRAMES_H

#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

#include "tables_lookup.h"
#include "frame.h"
#include "verdict.h"

static inline uintptr_t
arch_leaf_return(struct unwind_reader *r, const struct unwind_frame *f, unsigned verdict, uintptr_t *sp)
{
	(void)r;
	(void)verdict;
	(void)sp;
	return UNWIND_KNOWN(f, CFI_REG_RA) ? f->regs[CFI_REG_RA] : 0;
}

/* x29 points to where the caller has saved its own caller's: the caller's rules tell. */
static inline uintptr_t
arch_caller_sp(const struct tables *t, uintptr_t ra, uintptr_t fp, uintptr_t next)
{
	uint32_t              code = t ? tables_code(t, ra - 1) : TABLES_CODE_NONE;
	uintptr_t             least = fp + 2 * sizeof(uintptr_t), sp = least;
	const struct cfi_row *row;

	if (TABLES_CODE_KIND(code) == TABLES_CODE_PLAIN && !(code & TABLES_CODE_FROM_FP) && TABLES_FIELD(code, FP) != 0) {
		sp = next + TABLES_FIELD(code, FP) - TABLES_FIELD(code, CFA);
	} else if (TABLES_CODE_KIND(code) == TABLES_CODE_PALETTE) {
		row = tables_palette_row(TABLES_CODE_ROW(code));
		if (row->cfa.kind == CFI_REGISTER && row->cfa.reg == CFI_REG_SP && row->fp.kind == CFI_AT_CFA)
			sp = next - (uintptr_t)(intptr_t)row->fp.offset - (uintptr_t)(intptr_t)row->cfa.offset;
	}
	return sp >= least && sp <= next ? sp : least;
}

/* sp is at struct rt_sigframe then, a siginfo_t and a ucontext_t: these are followed by the
 * floating point registers, with their magic number and size. */
static inline bool
arch_is_at_sigframe(struct unwind_reader *r, const struct unwind_frame *f)
{
	uintptr_t at = f->regs[CFI_REG_SP] + sizeof(siginfo_t) + offsetof(ucontext_t, uc_mcontext.__reserved), value;

	return unwind_load(r, at, &value) && value == (sizeof(struct fpsimd_context) << 32 | FPSIMD_MAGIC);
}

/* From the kernel's return from a handler to what was interrupted. */
static inline enum unwind_step
arch_step_sigreturn(struct unwind_reader *r, struct unwind_frame *f, uintptr_t *pc)
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

static inline bool
arch_step_stub(const struct unwind_reader *r, uintptr_t at, struct unwind_frame *f, uintptr_t *pc)
{
	unsigned  verdict = unwind_verdict_at(r, at);
	uintptr_t ra;

	if (!(verdict & UNWIND_VERDICT_STUB) || !UNWIND_KNOWN(f, CFI_REG_RA))
		return false;
	ra = arch_pointer_strip(f->regs[CFI_REG_RA]);
	if (!unwind_code_plausible(ra))
		return false;
	f->regs[CFI_REG_SP] += verdict & UNWIND_VERDICT_PUSHED ? 16 : 0;
	f->known &= (uint64_t)1 << CFI_REG_SP | (uint64_t)1 << CFI_REG_FP | (uint64_t)1 << CFI_REG_BASE;
	*pc = ra;
	return true;
}

#endif
