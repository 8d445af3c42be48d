/*
 * arch_insn.h - aarch64: instructions, as the verdicts of the walk and the stubs of the symbols read them.
 */
#ifndef ARCH_INSN_H
#define ARCH_INSN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define INSN_STP_X16_X30 0xa9bf7bf0 /* stp x16, x30, [sp, #-16]! */
#define INSN_BTI_C       0xd503245f
#define INSN_PACIASP     0xd503233f
#define INSN_AUTIA1716   0xd503219f
#define INSN_BR_X17      0xd61f0220
#define INSN_RET         0xd65f03c0
#define STUB_INSNS  6
#define IS_ADRP(i)  (((i) & 0x9f00001f) == 0x90000010) /* adrp x16, ... */

static inline uint32_t
arch_insn_at(const unsigned char *at, int n)
{
	uint32_t insn;

	memcpy(&insn, at + n * (int)sizeof(insn), sizeof(insn));
	return insn;
}

/* Between a stub's first instruction and its jump; none of these touches sp or x30. */
static inline bool
arch_is_stub_insn(uint32_t i)
{
	return IS_ADRP(i) || (i & 0xffc003ff) == 0xf9400211 /* ldr x17, [x16, #n] */ ||
	       (i & 0xffc003ff) == 0x91000210 /* add x16, x16, #n */ || i == INSN_AUTIA1716;
}

#endif
