/*
 * arch_recover.h - x86-64: functions that keep a frame pointer, and calls of them, by their code.
 *
 * What each name is for: arch/other/arch_recover.h.
 */
#ifndef ARCH_RECOVER_H
#define ARCH_RECOVER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "arch_code.h"
#include "tables_lookup.h"
#include "recover.h"

#define ARCH_ROWS_MAX     256    /* looked at on the way back to a function's beginning */
#define ARCH_CODE_BYTES   96     /* of a function's first instructions */
#define ARCH_INSNS_MAX    32
#define ARCH_CALL_BYTES   8      /* the longest call through a pointer has 7 */

static inline int32_t
arch_signed_32(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Where the function begins that pc is in; 0: it does not begin as frames do. */
static inline uintptr_t
arch_function_begin(const struct tables *t, struct unwind_code *c, uintptr_t pc)
{
	uintptr_t begin;
	uint8_t   code[ARCH_ENDBR_BYTES + 1];

	for (int i = 0; i < ARCH_ROWS_MAX; i++) {
		uint32_t rules = tables_code(t, pc);

		begin = tables_row_begin(t, pc);
		if (rules == TABLES_CODE_NONE || !begin)
			return 0;
		if (TABLES_CODE_KIND(rules) == TABLES_CODE_PLAIN && !(rules & TABLES_CODE_FROM_FP) &&
		    TABLES_FIELD(rules, CFA) == 16) {
			if (!unwind_code_copy(c, begin - sizeof(code), code, sizeof(code)) || code[ARCH_ENDBR_BYTES] != 0x55)
				return 0;
			return arch_is_endbr(code) ? begin - sizeof(code) : begin - 1;
		}
		pc = begin - 1;
	}
	return 0;
}

/* ---- calls ---- */

/* Is it the function, or a stub that jumps to it? */
static inline bool
arch_leads_to(struct unwind_code *c, uintptr_t target, uintptr_t function)
{
	uint8_t   code[12];
	uintptr_t slot;
	size_t    i = 0;

	if (target == function)
		return true;
	if (!unwind_code_copy(c, target, code, sizeof(code)))
		return false;
	if (arch_is_endbr(code))
		i = ARCH_ENDBR_BYTES;
	if (code[i] == 0xf2)
		i++;
	if (code[i] != 0xff || code[i + 1] != 0x25)
		return false;
	slot = target + i + 6 + (uintptr_t)(intptr_t)arch_signed_32(code + i + 2);
	return unwind_code_copy(c, slot, &slot, sizeof(slot)) && slot == function;
}

static inline enum unwind_call
arch_call_before(const struct tables *t, struct unwind_code *c, uintptr_t ra, uintptr_t function)
{
	uint8_t   code[ARCH_CALL_BYTES];
	uintptr_t slot;

	if (!unwind_code_plausible(ra) || tables_code(t, ra - 1) == TABLES_CODE_NONE || !unwind_code_copy(c, ra - sizeof(code), code, sizeof(code)))
		return UNWIND_CALL_NONE;
	if (code[3] == 0xe8)
		return arch_leads_to(c, ra + (uintptr_t)(intptr_t)arch_signed_32(code + 4), function) ? UNWIND_CALL_THIS : UNWIND_CALL_OTHER;
	if (code[2] == 0xff && code[3] == 0x15) { /* through the object's own table */
		slot = ra + (uintptr_t)(intptr_t)arch_signed_32(code + 4);
		return unwind_code_copy(c, slot, &slot, sizeof(slot)) && slot == function ? UNWIND_CALL_THIS : UNWIND_CALL_OTHER;
	}
	return arch_is_behind_call(code + sizeof(code)) ? UNWIND_CALL_POINTER : UNWIND_CALL_NONE;
}

/* ---- a function's first instructions ---- */

struct arch_insn {
	const uint8_t *p, *end;
	bool           wide, reg_high, rm_high; /* REX.W, .R, .B */
	bool           bad;
};

static inline uint8_t
arch_next(struct arch_insn *i)
{
	if (i->p == i->end) {
		i->bad = true;
		return 0;
	}
	return *i->p++;
}

/* Skips the operand; its ModRM byte. */
static inline uint8_t
arch_operand(struct arch_insn *i)
{
	uint8_t modrm = arch_next(i), mod = modrm >> 6, rm = modrm & 7, base = rm;
	int     skip = mod == 1 ? 1 : mod == 2 ? 4 : 0;

	if (mod == 3)
		return modrm;
	if (rm == 4)
		base = arch_next(i) & 7;
	if (mod == 0 && base == 5)
		skip = 4;
	while (skip--)
		arch_next(i);
	return modrm;
}

static inline int32_t
arch_immediate(struct arch_insn *i, int size)
{
	uint8_t b[4] = { 0 };

	for (int k = 0; k < size; k++)
		b[k] = arch_next(i);
	return size == 1 ? (int8_t)b[0] : arch_signed_32(b);
}

/* sub $n,%rsp and the like; everything else is a constant for something else. */
static inline void
arch_arithmetic(struct arch_insn *i, int size, intptr_t *pushed)
{
	uint8_t modrm = arch_operand(i);
	int32_t n = arch_immediate(i, size);

	if (modrm >> 6 != 3 || (modrm & 7) != 4 || i->rm_high)
		return;
	if ((modrm >> 3 & 7) == 5)
		*pushed += n;
	else if ((modrm >> 3 & 7) == 0)
		*pushed -= n;
	else
		i->bad = true; /* and $-32,%rsp */
}

/* Instructions with a ModRM byte and no constant; writes_rm: its operand is the target. */
static inline void
arch_plain(struct arch_insn *i, bool writes_rm)
{
	uint8_t modrm = arch_operand(i);

	if (writes_rm ? modrm >> 6 == 3 && (modrm & 7) == 4 && !i->rm_high : (modrm >> 3 & 7) == 4 && !i->reg_high)
		i->bad = true; /* sp itself */
}

static inline void
arch_two_byte(struct arch_insn *i)
{
	uint8_t op = arch_next(i);

	if ((op >= 0x10 && op <= 0x17) || op == 0x1f || op == 0x28 || op == 0x29 || (op >= 0x51 && op <= 0x6f) ||
	    (op >= 0x74 && op <= 0x7f && op != 0x77) || op == 0xef || op == 0xd6)
		arch_operand(i); /* vector registers, or nothing */
	else if ((op >= 0x40 && op <= 0x4f) || op == 0xaf || op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf)
		arch_plain(i, false);
	else
		i->bad = true;
}

/* One instruction that goes on to the next; else bad is set. */
static inline void
arch_insn_read(struct arch_insn *i, intptr_t *pushed)
{
	uint8_t op = arch_next(i);

	while (op == 0x66 || op == 0x64 || op == 0xf2 || op == 0xf3)
		op = arch_next(i);
	i->wide = i->reg_high = i->rm_high = false;
	if ((op & 0xf0) == 0x40) {
		i->wide = op & 8;
		i->reg_high = op & 4;
		i->rm_high = op & 1;
		op = arch_next(i);
	}
	if (op >= 0x50 && op <= 0x57)
		*pushed += 8;
	else if (op == 0x83)
		arch_arithmetic(i, 1, pushed);
	else if (op == 0x81)
		arch_arithmetic(i, 4, pushed);
	else if (op == 0x0f)
		arch_two_byte(i);
	else if (op == 0x84 || op == 0x85 || (op < 0x40 && (op & 0x3c) == 0x38))
		arch_operand(i); /* tests write nothing */
	else if ((op < 0x40 && (op & 7) < 4) || op == 0x63 || (op >= 0x88 && op <= 0x8b) || op == 0x8d)
		arch_plain(i, op != 0x63 && op != 0x8d && !(op & 2));
	else if (op >= 0xb8 && op <= 0xbf)
		arch_immediate(i, 4), i->wide ? arch_immediate(i, 4) : 0;
	else if (op == 0xc7)
		arch_operand(i), arch_immediate(i, 4);
	else if (op == 0xc6)
		arch_operand(i), arch_immediate(i, 1);
	else if (op != 0x90)
		i->bad = true;
}

/* Bytes between the frame pointer and sp, as the function's beginning makes them. */
static inline intptr_t
arch_frame_bytes(struct unwind_code *c, uintptr_t begin)
{
	uint8_t          code[ARCH_CODE_BYTES];
	struct arch_insn i = { .p = code, .end = code + sizeof(code) };
	intptr_t         pushed = 0, before = 0;
	bool             framed = false;

	if (!unwind_code_copy(c, begin, code, sizeof(code)))
		return -1;
	if (arch_is_endbr(code))
		i.p += ARCH_ENDBR_BYTES;
	i.p++; /* push %rbp */
	for (int n = 0; n < ARCH_INSNS_MAX; n++) {
		if (i.end - i.p >= 3 && (memcmp(i.p, "\x48\x89\xe5", 3) == 0 || memcmp(i.p, "\x48\x8b\xec", 3) == 0)) {
			framed = true;
			pushed = 0;
		}
		before = pushed;
		arch_insn_read(&i, &pushed);
		if (i.bad)
			break;
	}
	return framed ? (i.bad ? before : pushed) : -1;
}

#endif
