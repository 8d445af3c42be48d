/*
 * unwind_undescribed.c - from frames that no table describes to their callers.
 *
 *     code without a table       its frame pointer, if that leads to where a call returns to;
 *                                a leaf before or after its frame: where the stack pointer is
 *     on aarch64:
 *     a stub of a linker         the caller is in x30: stubs call nothing
 *     the return from a handler  the registers of what was interrupted are in the kernel's frame
 *
 * What a stranger would get wrong:
 * - A leaf interrupted before its frame is made, or after it is undone, hides its caller.
 *   Only instructions that leave no doubt are looked at; a wrong frame is worse than a
 *   missing one.
 * - On aarch64 linkers write no .eh_frame for the stubs through which an object calls
 *   others, where on x86-64 they do.  A walk by frame pointers would leave out the caller
 *   of such a leaf, as that is in no frame yet.
 * - Linux 5.8 had wrong rules for its return from a handler, others have none: so its
 *   instructions are looked for.
 * - Where sp was in the caller follows from the frame pointer on x86-64 alone: on aarch64 the
 *   two saved words lie anywhere in their frame, mostly at its bottom.  There the caller's
 *   own rules tell.
 * - A stub is known by all of its instructions, from the address of a slot to the jump
 *   there; the jump alone may be any.  The first stub of an object pushes two registers.
 *
 * Tests: tests/test_unwind_step.c, tests/test_unwind_tables.c.
 */
#include <config.h>

#include "unwind_undescribed.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "tables_lookup.h"
#include "unwind_tables.h"

#define NEAR_BYTES ((uintptr_t)16 << 20) /* most code of one object, or of one compiler */

/* ---- a leaf without a frame ---- */

#if defined(__x86_64__) || defined(__aarch64__)
static bool
code_read(uintptr_t pc, unsigned char bytes[sizeof(uintptr_t)])
{
	uintptr_t word;

	if (!unwind_code_word(pc, &word))
		return false;
	memcpy(bytes, &word, sizeof(word));
	return true;
}
#endif

/* The return address of an interrupted leaf that has no frame, and sp behind it; 0 when it
 * has one or when that is not certain. */
#if defined(__x86_64__)
static uintptr_t
leaf_return_address(struct unwind_reader *r, const struct unwind_frame *f, uintptr_t pc, uintptr_t *sp)
{
	static const unsigned char push_mov[] = { 0x55, 0x48, 0x89, 0xe5 };
	static const unsigned char endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	unsigned char              at[8], before[8];
	uintptr_t                  ret = 0, slot = f->regs[CFI_REG_SP];

	if (!code_read(pc, at))
		return 0;
	if (memcmp(at, push_mov + 1, 3) == 0 && code_read(pc - 1, before) && before[0] == push_mov[0])
		slot += sizeof(ret);
	else if (memcmp(at, push_mov, sizeof(push_mov)) != 0 && /* push %rbp; mov %rsp,%rbp */
		 (memcmp(at, endbr, sizeof(endbr)) != 0 || memcmp(at + 4, push_mov, sizeof(push_mov)) != 0) &&
		 at[0] != 0xc3 && at[0] != 0xc2 && (at[0] != 0xf3 || at[1] != 0xc3)) /* ret */
		return 0;
	*sp = slot + sizeof(ret);
	return unwind_load(r, slot, &ret) ? ret : 0;
}
#elif defined(__aarch64__)
static uintptr_t
leaf_return_address(struct unwind_reader *r, const struct unwind_frame *f, uintptr_t pc, uintptr_t *sp)
{
	uint32_t at[2];

	(void)r;
	*sp = f->regs[CFI_REG_SP];
	if (!UNWIND_KNOWN(f, CFI_REG_RA))
		return 0;
	if (unwind_in_stub(pc))
		return f->regs[CFI_REG_RA];
	if (pc % 4 != 0 || !code_read(pc, (unsigned char *)at))
		return 0;
	/* bti or paciasp, then the store */
	if (at[0] == 0xd503245f || at[0] == 0xd503233f)
		at[0] = at[1];
	/* stp x29, x30, [sp, #-n]! or ret: the caller is still, or again, in x30 */
	if ((at[0] & 0xffc07fff) == 0xa9807bfd || at[0] == 0xd65f03c0)
		return f->regs[CFI_REG_RA];
	return 0;
}
#else
static uintptr_t
leaf_return_address(struct unwind_reader *r, const struct unwind_frame *f, uintptr_t pc, uintptr_t *sp)
{
	(void)r;
	(void)f;
	(void)pc;
	(void)sp;
	return 0;
}
#endif

/* ---- a frame ---- */

/* In code that no look has seen yet callers may be as new, if they are near. */
static bool
is_caller(const struct tables *t, uintptr_t at, uintptr_t ra)
{
	if (tables_is_return(t, ra))
		return true;
	return t && ra - at + NEAR_BYTES < 2 * NEAR_BYTES && !tables_is_code(t, at) && tables_looks_return(ra);
}

/* sp in the caller, to which ra leads: fp is the callee's frame pointer, next the caller's. */
#if defined(__aarch64__)
static uintptr_t
caller_sp(const struct tables *t, uintptr_t ra, uintptr_t fp, uintptr_t next)
{
	uint32_t              code = t ? tables_code(t, ra - 1) : TABLES_CODE_NONE;
	uintptr_t             least = fp + 2 * sizeof(uintptr_t), sp = least;
	const struct cfi_row *row;

	/* x29 points to where the caller has saved its own caller's. */
	if (TABLES_CODE_KIND(code) == TABLES_CODE_PLAIN && !(code & TABLES_CODE_FROM_FP) && TABLES_FIELD(code, FP) != 0) {
		sp = next + TABLES_FIELD(code, FP) - TABLES_FIELD(code, CFA);
	} else if (TABLES_CODE_KIND(code) == TABLES_CODE_PALETTE) {
		row = tables_palette_row(TABLES_CODE_ROW(code));
		if (row->cfa.kind == CFI_REGISTER && row->cfa.reg == CFI_REG_SP && row->fp.kind == CFI_AT_CFA)
			sp = next - (uintptr_t)(intptr_t)row->fp.offset - (uintptr_t)(intptr_t)row->cfa.offset;
	}
	return sp >= least && sp <= next ? sp : least;
}
#else
static uintptr_t
caller_sp(const struct tables *t, uintptr_t ra, uintptr_t fp, uintptr_t next)
{
	(void)t;
	(void)ra;
	(void)next;
	return fp + 2 * sizeof(uintptr_t);
}
#endif

enum unwind_step
unwind_step_fp(const struct tables *t, struct unwind_reader *r, struct unwind_frame *f, uintptr_t at, bool leaf, uintptr_t *pc)
{
	uintptr_t fp = f->regs[CFI_REG_FP], sp = f->regs[CFI_REG_SP], next, ra;

	if (leaf && !r->copy) {
		ra = unwind_pointer_strip(leaf_return_address(r, f, at, &sp));
		if (ra && is_caller(t, at, ra)) {
			f->known &= (uint64_t)1 << CFI_REG_FP;
			unwind_frame_set(f, CFI_REG_SP, sp);
			*pc = ra;
			return UNWIND_ON;
		}
		sp = f->regs[CFI_REG_SP];
	}
	if (!UNWIND_KNOWN(f, CFI_REG_FP) || fp < sp || fp - sp > UNWIND_FRAME_BYTES_MAX)
		return UNWIND_LOST;
	if (!unwind_load(r, fp, &next) || !unwind_load(r, fp + sizeof(uintptr_t), &ra))
		return UNWIND_LOST;
	ra = unwind_pointer_strip(ra);
	if (!is_caller(t, at, ra)) {
		if (t && unwind_code_plausible(ra) && !tables_is_code(t, ra - 1))
			unwind_refresh_want(ra - 1);
		return UNWIND_LOST;
	}
	f->known = 0;
	unwind_frame_set(f, CFI_REG_SP, caller_sp(t, ra, fp, next));
	unwind_frame_set(f, CFI_REG_FP, next);
	*pc = ra;
	return UNWIND_ON;
}

#if defined(__aarch64__)

/* mov x8, #__NR_rt_sigreturn; svc #0 */
bool
unwind_is_sigreturn(uintptr_t pc)
{
	uintptr_t word;

	return pc % 4 == 0 && unwind_code_word(pc, &word) && word == 0xd4000001d2801168;
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

static uint32_t
insn_at(uintptr_t pc)
{
	uintptr_t word;

	return unwind_code_word(pc, &word) ? (uint32_t)word : 0;
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
