/*
 * arch_stubs.h - aarch64: the stubs through which an object calls others.
 *
 * What each name is for: arch/other/arch_stubs.h.
 */
#ifndef ARCH_STUBS_H
#define ARCH_STUBS_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch_insn.h"
#include "plt.h"

#define ARCH_RELOC_SLOT     R_AARCH64_JUMP_SLOT
#define ARCH_RELOC_DATA     R_AARCH64_GLOB_DAT
#define ARCH_RELOC_RELATIVE R_AARCH64_RELATIVE

#define INSN       4 /* bytes */
#define INSN_NOP   0xd503201f

/* adrp x16, page; ldr x17, [x16, #offset]; add; br x17, and what protects it. */
static inline bool
arch_stub_next(const ElfW(Shdr) *s, const unsigned char *code, size_t *at, struct plt_stub *ret)
{
	for (size_t i = *at; i + 2 * INSN <= s->sh_size; i += INSN) {
		uint32_t adrp = arch_insn_at(code + i, 0), ldr = arch_insn_at(code + i, 1);
		uint64_t pages = (uint64_t)(adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
		size_t   end = i + 2 * INSN;

		if (!IS_ADRP(adrp) || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		ret->begin = i >= INSN && arch_insn_at(code + i, -1) == INSN_BTI_C ? i - INSN : i;
		ret->slot = ((s->sh_addr + i) & ~(uint64_t)4095) + (((pages ^ 1 << 20) - (1 << 20)) << 12) +
			    (ldr >> 10 & 0xfff) * 8;
		while (end - ret->begin < STUB_INSNS * INSN && end + INSN <= s->sh_size &&
		       arch_insn_at(code + end, -1) != INSN_BR_X17)
			end += INSN;
		while (end + INSN <= s->sh_size && arch_insn_at(code + end, 0) == INSN_NOP)
			end += INSN;
		ret->size = end - ret->begin;
		*at = end;
		return true;
	}
	return false;
}

#endif
