/*
 * frame.c - the registers of an interrupted leaf, by DWARF's numbers.
 *
 * Most walks ask for three of them; the others are taken only where a rule of an unusual
 * form may need them, or libunwind.
 *
 * Tests: tests/unwind/test_tables.c, tests/unwind/test_remote.c.
 */
#include <config.h>

#include "frame.h"

#include <ucontext.h>

void
unwind_frame_registers(struct unwind_frame *f, const void *ucontext)
{
	const ucontext_t *uc = ucontext;

	for (unsigned i = 0; i < CFI_REGS; i++)
		if (arch_has_register(i))
			unwind_frame_set(f, i, arch_register(uc, i));
}

bool
unwind_frame_register(struct unwind_frame *f, const void *ucontext, unsigned reg)
{
	const ucontext_t *uc = ucontext;

	if (!arch_has_register(reg))
		return false;
	unwind_frame_set(f, reg, arch_register(uc, reg));
	return true;
}

void
unwind_frame_rest(struct unwind_frame *f, const struct unwind_regs *regs)
{
	if (regs->ucontext)
		unwind_frame_registers(f, regs->ucontext);
	if (regs->lr)
		unwind_frame_set(f, CFI_REG_RA, regs->lr);
	unwind_frame_set(f, CFI_REG_SP, regs->sp);
	if (!regs->fp_unknown)
		unwind_frame_set(f, CFI_REG_FP, regs->fp);
}
