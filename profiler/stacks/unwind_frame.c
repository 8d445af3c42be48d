/*
 * unwind_frame.c - the registers of an interrupted leaf, by DWARF's numbers.
 *
 * Most walks ask for three of them; the others are taken only where a rule of an unusual
 * form may need them, or libunwind.
 *
 * Tests: tests/test_unwind_tables.c, tests/test_unwind_remote.c.
 */
#include <config.h>

#include "unwind_frame.h"

#include <ucontext.h>

#if defined(__x86_64__)
/* By DWARF's numbers. */
static const unsigned char gregs[CFI_REGS] = {
	REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
	REG_R9,	 REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
};
#define CONTEXT_REGS      CFI_REGS
#define CONTEXT_REG(uc, i) ((uintptr_t)(uc)->uc_mcontext.gregs[gregs[i]])
#elif defined(__aarch64__)
#define CONTEXT_REGS      31U /* but sp */
#define CONTEXT_REG(uc, i) ((uintptr_t)(uc)->uc_mcontext.regs[i])
#else
#define CONTEXT_REGS      0U
#define CONTEXT_REG(uc, i) ((void)(uc), (uintptr_t)(i))
#endif

void
unwind_frame_registers(struct unwind_frame *f, const void *ucontext)
{
	const ucontext_t *uc = ucontext;

	for (unsigned i = 0; i < CONTEXT_REGS; i++)
		unwind_frame_set(f, i, CONTEXT_REG(uc, i));
}

bool
unwind_frame_register(struct unwind_frame *f, const void *ucontext, unsigned reg)
{
	const ucontext_t *uc = ucontext;

	if (reg >= CONTEXT_REGS)
		return false;
	unwind_frame_set(f, reg, CONTEXT_REG(uc, reg));
	return true;
}

void
unwind_frame_rest(struct unwind_frame *f, const struct unwind_regs *regs)
{
	if (regs->ucontext)
		unwind_frame_registers(f, regs->ucontext);
#if defined(__aarch64__)
	if (regs->lr)
		unwind_frame_set(f, CFI_REG_RA, regs->lr);
#endif
	unwind_frame_set(f, CFI_REG_SP, regs->sp);
	if (!regs->fp_unknown)
		unwind_frame_set(f, CFI_REG_FP, regs->fp);
}
