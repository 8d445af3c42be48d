/*
 * unwind_undescribed.c - from frames that no table describes to their callers.
 *
 *     code made at run time      its frame pointer, if that leads to a pc that the tables know
 *     on aarch64:
 *     a stub of a linker         the caller is in x30: stubs call nothing
 *     the return from a handler  the registers of what was interrupted are in the kernel's frame
 *
 * What a stranger would get wrong:
 * - On aarch64 linkers write no .eh_frame for the stubs through which an object calls
 *   others, where on x86-64 they do.  A walk by frame pointers would leave out the caller
 *   of such a leaf, as that is in no frame yet.
 * - Linux 5.8 had wrong rules for its return from a handler, others have none: so its
 *   instructions are looked for.
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

enum unwind_step
unwind_step_fp(const struct tables *t, struct unwind_reader *r, struct unwind_frame *f, uintptr_t *pc)
{
	uintptr_t fp = f->regs[CFI_REG_FP], next, ra;

	if (!UNWIND_KNOWN(f, CFI_REG_FP) || fp < f->regs[CFI_REG_SP] || fp - f->regs[CFI_REG_SP] > UNWIND_FRAME_BYTES_MAX)
		return UNWIND_LOST;
	if (!unwind_load(r, fp, &next) || !unwind_load(r, fp + sizeof(uintptr_t), &ra))
		return UNWIND_LOST;
	ra = unwind_pointer_strip(ra);
	if (!unwind_code_plausible(ra) || tables_code(t, ra - 1) == TABLES_CODE_NONE)
		return UNWIND_LOST;
	f->known = 0;
	unwind_frame_set(f, CFI_REG_SP, fp + 2 * sizeof(uintptr_t));
	unwind_frame_set(f, CFI_REG_FP, next);
	*pc = ra;
	return UNWIND_ON;
}

#if defined(__aarch64__)

/* mov x8, #__NR_rt_sigreturn; svc #0 */
bool UNWIND_NO_SANITIZE
unwind_is_sigreturn(uintptr_t pc)
{
	const volatile uint32_t *code = (const volatile uint32_t *)pc;

	return pc % 4 == 0 && unwind_probe(pc) && unwind_probe(pc + 7) && code[0] == 0xd2801168 && code[1] == 0xd4000001;
}

/* From the kernel's return from a handler to what was interrupted: sp is at struct
 * rt_sigframe, a siginfo_t and a ucontext_t. */
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

#define STP_X16_X30 0xa9bf7bf0 /* stp x16, x30, [sp, #-16]! */
#define BTI_C       0xd503245f
#define AUTIA1716   0xd503219f
#define BR_X17      0xd61f0220
#define STUB_INSNS  6
#define IS_ADRP(i)  (((i) & 0x9f00001f) == 0x90000010) /* adrp x16, ... */

/* Between a stub's first instruction and its jump; none of these touches sp or x30. */
static bool
is_stub_insn(uint32_t i)
{
	return IS_ADRP(i) || (i & 0xffc003ff) == 0xf9400211 /* ldr x17, [x16, #n] */ ||
	       (i & 0xffc003ff) == 0x91000210 /* add x16, x16, #n */ || i == AUTIA1716;
}

static uint32_t UNWIND_NO_SANITIZE
insn_at(uintptr_t pc)
{
	return unwind_probe(pc) ? *(const volatile uint32_t *)pc : 0;
}

/* Bytes that the stub has pushed when pc is to run; -1: it is no stub. */
static int
stub_pushed(uintptr_t pc)
{
	uintptr_t at = pc;
	uint32_t  insn = pc % 4 == 0 ? insn_at(at) : 0;
	bool      whole = false;

	if (insn == BTI_C || insn == STP_X16_X30)
		insn = insn_at(at += 4);
	for (; at - pc < 4 * STUB_INSNS && is_stub_insn(insn); insn = insn_at(at += 4))
		whole |= IS_ADRP(insn);
	if (insn != BR_X17)
		return -1;
	insn = insn_at(at = pc - 4);
	for (; pc - at < 4 * STUB_INSNS && is_stub_insn(insn); insn = insn_at(at -= 4))
		whole |= IS_ADRP(insn);
	if (!whole)
		return -1;
	return insn == STP_X16_X30 ? 16 : 0;
}

bool
unwind_in_stub(uintptr_t pc)
{
	return stub_pushed(pc) >= 0;
}

bool
unwind_step_stub(uintptr_t at, struct unwind_frame *f, uintptr_t *pc)
{
	int       pushed = stub_pushed(at);
	uintptr_t ra;

	if (pushed < 0 || !UNWIND_KNOWN(f, CFI_REG_RA))
		return false;
	ra = unwind_pointer_strip(f->regs[CFI_REG_RA]);
	if (!unwind_code_plausible(ra))
		return false;
	f->regs[CFI_REG_SP] += (unsigned)pushed;
	f->known &= (uint64_t)1 << CFI_REG_SP | (uint64_t)1 << CFI_REG_FP | (uint64_t)1 << CFI_REG_BASE;
	*pc = ra;
	return true;
}

#endif
