/*
 * arch_code.h - aarch64: what the instructions around an address tell of it.
 *
 * What each name is for: arch/other/arch_code.h.
 */
#ifndef ARCH_CODE_H
#define ARCH_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch_insn.h"
#include "verdict.h"

static inline unsigned
arch_judge_stub(const unsigned char *at)
{
	int      n = 0;
	uint32_t insn = arch_insn_at(at, n);
	bool     whole = false;

	if (insn == INSN_BTI_C || insn == INSN_STP_X16_X30)
		insn = arch_insn_at(at, ++n);
	for (; n < STUB_INSNS && arch_is_stub_insn(insn); insn = arch_insn_at(at, ++n))
		whole |= IS_ADRP(insn);
	if (insn != INSN_BR_X17)
		return 0;
	insn = arch_insn_at(at, n = -1);
	for (; n > -STUB_INSNS && arch_is_stub_insn(insn); insn = arch_insn_at(at, --n))
		whole |= IS_ADRP(insn);
	if (!whole)
		return 0;
	return UNWIND_VERDICT_STUB | UNWIND_VERDICT_LEAF | (insn == INSN_STP_X16_X30 ? UNWIND_VERDICT_PUSHED : 0);
}

static inline unsigned
arch_judge(uintptr_t pc, const unsigned char *at)
{
	uint32_t before = arch_insn_at(at, -1), insn = arch_insn_at(at, 0);
	unsigned bits = UNWIND_VERDICT_KNOWN;

	/* bl, blr, and blr with a signed pointer */
	if (before >> 26 == 0x25 || (before & 0xfffffc1f) == 0xd63f0000 || (before & 0xfefff800) == 0xd63f0800)
		bits |= UNWIND_VERDICT_CALL;
	if (pc % sizeof(insn) != 0)
		return bits;
	/* mov x8, #__NR_rt_sigreturn; svc #0 */
	if (insn == 0xd2801168 && arch_insn_at(at, 1) == 0xd4000001)
		bits |= UNWIND_VERDICT_SIGRETURN;
	bits |= arch_judge_stub(at);
	if (insn == INSN_BTI_C || insn == INSN_PACIASP) /* then the store */
		insn = arch_insn_at(at, 1);
	/* stp x29, x30, [sp, #-n]! or ret: the caller is still, or again, in x30 */
	if ((insn & 0xffc07fff) == 0xa9807bfd || insn == INSN_RET)
		bits |= UNWIND_VERDICT_LEAF;
	return bits;
}

/* Where the jump at these bytes, which are at pc, leads to: b or b.cond; 0: there is none. */
static inline uintptr_t
arch_jump_target(const unsigned char *at, size_t size, uintptr_t pc)
{
	uint32_t insn;

	if (pc % sizeof(insn) != 0 || size < sizeof(insn))
		return 0;
	insn = arch_insn_at(at, 0);
	if (insn >> 26 == 0x05)
		return pc + (uintptr_t)((intptr_t)(int32_t)(insn << 6) >> 4);
	if ((insn & 0xff000010) == 0x54000000)
		return pc + (uintptr_t)((intptr_t)(int32_t)(insn << 8 & 0xffffe000) >> 11);
	return 0;
}

#define ARCH_LEAF_BEFORE (STUB_INSNS * 4)
#define ARCH_LEAF_BEHIND (STUB_INSNS * 4 + 4)

#endif
