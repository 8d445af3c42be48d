/*
 * arch_stubs.h - x86-64: the stubs through which an object calls others.
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
#include <string.h>

#include "plt.h"

#define ARCH_RELOC_SLOT     R_X86_64_JUMP_SLOT
#define ARCH_RELOC_DATA     R_X86_64_GLOB_DAT
#define ARCH_RELOC_RELATIVE R_X86_64_RELATIVE

#define JUMP_BYTES 6 /* ff 25 and four bytes of distance */

static inline bool
arch_stub_next(const ElfW(Shdr) *s, const unsigned char *code, size_t *at, struct plt_stub *ret)
{
	int32_t distance;

	if (s->sh_entsize != 8 && s->sh_entsize != 16)
		return false;
	for (size_t i = *at; i + JUMP_BYTES <= s->sh_size; i++) {
		if (code[i] != 0xff || code[i + 1] != 0x25)
			continue;
		memcpy(&distance, code + i + 2, sizeof(distance));
		ret->begin = i / s->sh_entsize * s->sh_entsize;
		ret->size = s->sh_entsize;
		ret->slot = s->sh_addr + i + JUMP_BYTES + (uint64_t)(int64_t)distance;
		/* What looks like a jump to a slot may be in the middle of another instruction. */
		*at = i + 1;
		return true;
	}
	return false;
}

#endif
