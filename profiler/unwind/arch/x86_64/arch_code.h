/*
 * arch_code.h - x86-64: what the instructions around an address tell of it.
 *
 * What each name is for: arch/other/arch_code.h.
 */
#ifndef ARCH_CODE_H
#define ARCH_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "verdict.h"

/* Is `length` bytes before the end a call through a register or memory: ff /2? */
static inline bool
arch_is_call_through(const unsigned char *end, unsigned length)
{
	unsigned modrm = end[1 - (int)length], mod = modrm >> 6, rm = modrm & 7, bytes = 2;

	if (end[-(int)length] != 0xff || (modrm >> 3 & 7) != 2)
		return false;
	if (mod != 3) {
		bytes += rm == 4; /* a SIB byte follows */
		bytes += mod == 1 ? 1 : mod == 2 || rm == 5 ? 4 : 0;
		if (mod == 0 && rm == 4 && length >= 3 && (end[2 - (int)length] & 7) == 5)
			bytes += 4;
	}
	return bytes == length;
}

static inline bool
arch_is_behind_call(const unsigned char *at)
{
	if (at[-5] == 0xe8)
		return true;
	for (unsigned length = 2; length <= 7; length++)
		if (arch_is_call_through(at, length))
			return true;
	return false;
}

#define ARCH_ENDBR_BYTES 4 /* where jumps through a pointer may land */

static inline bool
arch_is_endbr(const unsigned char *at)
{
	return memcmp(at, "\xf3\x0f\x1e\xfa", ARCH_ENDBR_BYTES) == 0;
}

static inline unsigned
arch_judge(uintptr_t pc, const unsigned char *at)
{
	static const unsigned char sigreturn[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 }; /* mov $15, %rax; syscall */
	static const unsigned char push_mov[] = { 0x55, 0x48, 0x89, 0xe5 }; /* push %rbp; mov %rsp,%rbp */
	unsigned                   bits = UNWIND_VERDICT_KNOWN;

	(void)pc;
	if (arch_is_behind_call(at))
		bits |= UNWIND_VERDICT_CALL;
	if (memcmp(at, sigreturn, sizeof(sigreturn)) == 0)
		bits |= UNWIND_VERDICT_SIGRETURN;
	if (at[-1] == push_mov[0] && memcmp(at, push_mov + 1, sizeof(push_mov) - 1) == 0)
		bits |= UNWIND_VERDICT_LEAF_NEXT;
	else if (memcmp(at, push_mov, sizeof(push_mov)) == 0 ||
		 (arch_is_endbr(at) && memcmp(at + ARCH_ENDBR_BYTES, push_mov, sizeof(push_mov)) == 0) ||
		 at[0] == 0xc3 || at[0] == 0xc2 || (at[0] == 0xf3 && at[1] == 0xc3)) /* ret */
		bits |= UNWIND_VERDICT_LEAF;
	return bits;
}

/* Where the jump at these bytes, which are at pc, leads to: jmp or jcc with 32 bits; 0: there is none. */
static inline uintptr_t
arch_jump_target(const unsigned char *at, size_t size, uintptr_t pc)
{
	size_t  opcode = size >= 1 && at[0] == 0xe9 ? 1 : size >= 2 && at[0] == 0x0f && (at[1] & 0xf0) == 0x80 ? 2 : 0;
	int32_t by;

	if (!opcode || size < opcode + sizeof(by))
		return 0;
	memcpy(&by, at + opcode, sizeof(by));
	return pc + opcode + sizeof(by) + (uintptr_t)(intptr_t)by;
}

/* Bytes before and behind the leaf's pc that judging it takes. */
#define ARCH_LEAF_BEFORE 1
#define ARCH_LEAF_BEHIND 8

#endif
