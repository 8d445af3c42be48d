/*
 * by_tables.c - walks a stack by the rules of .eh_frame.
 *
 * For each frame: find the row of its pc, compute the CFA from sp, the frame
 * pointer or an expression, load the return address and the caller's frame pointer
 * from where the row says, and go on with sp = CFA.
 *
 * What a stranger would get wrong:
 * - A return address may be the first byte of the next function (a call that does not
 *   return ends the caller), so callers are looked up at pc - 1; a leaf that was
 *   interrupted, and the frame below a signal frame, at their exact pc.
 * - The walk must climb.  Only a leaf on aarch64, whose caller is still in x30, and a
 *   signal frame, which may sit on another stack, may leave sp where it is or lower.
 * - Registers but sp, the frame pointer and rbx are known in the leaf alone.  A rule that
 *   needs another one further up ends the walk as truncated; but OpenSSL's assembly has
 *   functions whose CFA is in rax, and which call helpers that leave it alone.
 * - Code without a table is left by its frame pointer (undescribed.c), frame after
 *   frame until the tables know one again; a caller that is no known code is not shown.
 * - Where a handler returns to, and where a coroutine begins, no call leads to: there pc - 1
 *   is another function's.
 *
 * Tests: tests/unwind/test_tables.c, tests/unwind/test_step.c.
 */
#include <config.h>

#include "unwind.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <ucontext.h>

#include "arch_frames.h"
#include "tables_lookup.h"
#include "frame.h"
#include "recover.h"
#include "undescribed.h"
#include "verdict.h"
#include "want.h"

#define SIGNAL_FRAMES_MAX 8 /* handlers interrupted by handlers */
#define HELPERS_MAX       2 /* called by assembly that keeps its CFA in any register ... */
#define HELPERS_BYTES     (64 << 10) /* ... from so near */

/* A function that has set up its frame pointer: CFA and both slots follow from it.  What
 * its code differs in from these is nothing, but for the base register's slot.  Not with
 * frame records, which lie anywhere above the frame pointer. */
#define CODE_KEEPS_FP     (TABLES_CODE_PLAIN | TABLES_CODE_FROM_FP | 2U << TABLES_CFA_SHIFT | 2U << TABLES_FP_SHIFT)
#define KEEPS_FP(differs) (!ARCH_FRAME_RECORD && ((differs) & ((1U << TABLES_BASE_SHIFT) - 1)) == 0)

/* ---- one frame ---- */

static bool
cfa_value(const struct cfi_rule *rule, struct unwind_reader *r, const struct unwind_frame *f, uintptr_t *ret)
{
	if (rule->kind == CFI_IS_EXPR)
		return unwind_expression(rule, r, f, NULL, ret);
	if (rule->kind != CFI_REGISTER || !UNWIND_KNOWN(f, rule->reg))
		return false;
	*ret = f->regs[rule->reg] + (uintptr_t)(intptr_t)rule->offset;
	return true;
}

/* A saved register's value; false when it cannot be known. */
static inline __attribute__((always_inline)) bool
rule_value(const struct cfi_rule *rule, unsigned reg, struct unwind_reader *r, const struct unwind_frame *f, uintptr_t cfa,
	   uintptr_t *ret)
{
	uintptr_t at;

	switch (rule->kind) {
	case CFI_SAME:
		if (UNWIND_KNOWN(f, reg))
			*ret = f->regs[reg];
		return UNWIND_KNOWN(f, reg);
	case CFI_AT_CFA: return unwind_load(r, cfa + (uintptr_t)(intptr_t)rule->offset, ret);
	case CFI_IS_CFA: *ret = cfa + (uintptr_t)(intptr_t)rule->offset; return true;
	case CFI_REGISTER:
		if (UNWIND_KNOWN(f, rule->reg))
			*ret = f->regs[rule->reg];
		return UNWIND_KNOWN(f, rule->reg);
	case CFI_AT_EXPR: return unwind_expression(rule, r, f, &cfa, &at) && unwind_load(r, at, ret);
	case CFI_IS_EXPR: return unwind_expression(rule, r, f, &cfa, ret);
	default: return false;
	}
}

/* By the row: the caller's pc, sp and frame pointer replace the frame's. */
static enum unwind_step
frame_step(const struct cfi_row *row, struct unwind_reader *r, struct unwind_frame *f, bool leaf, uintptr_t *pc)
{
	uintptr_t cfa, ra, fp = 0, base = 0;
	bool      have_fp, have_base;

	if (row->ra.kind == CFI_UNDEFINED)
		return UNWIND_ROOT;
	if (!cfa_value(&row->cfa, r, f, &cfa))
		return UNWIND_LOST;
	if (row->ra.kind == CFI_SAME && !leaf)
		return UNWIND_LOST;
	if (!rule_value(&row->ra, CFI_REG_RA, r, f, cfa, &ra))
		return UNWIND_LOST;
	have_fp = rule_value(&row->fp, CFI_REG_FP, r, f, cfa, &fp);
	have_base = rule_value(&row->base, CFI_REG_BASE, r, f, cfa, &base);
	if (!row->signal_frame && (cfa < f->regs[CFI_REG_SP] || (cfa == f->regs[CFI_REG_SP] && !leaf)))
		return UNWIND_LOST;
	f->known = 0;
	unwind_frame_set(f, CFI_REG_SP, cfa);
	if (have_fp)
		unwind_frame_set(f, CFI_REG_FP, fp);
	if (have_base)
		unwind_frame_set(f, CFI_REG_BASE, base);
	ra = arch_pointer_strip(ra);
	if (ra == 0)
		return UNWIND_ROOT;
	if (!unwind_code_plausible(ra))
		return UNWIND_LOST;
	*pc = ra;
	return UNWIND_ON;
}

static void
frame_start(struct unwind_frame *f, const struct unwind_regs *regs)
{
	f->known = 0;
	unwind_frame_set(f, CFI_REG_SP, regs->sp);
	if (!regs->fp_unknown)
		unwind_frame_set(f, CFI_REG_FP, regs->fp);
	f->regs[CFI_REG_BASE] = 0;
	if (regs->ucontext && arch_has_register(CFI_REG_BASE))
		unwind_frame_set(f, CFI_REG_BASE, arch_register(regs->ucontext, CFI_REG_BASE));
}

/* A plain code as the row it came from. */
static void
row_of_plain(uint32_t code, struct cfi_row *row)
{
	int32_t fp = (int32_t)TABLES_FIELD(code, FP), base = (int32_t)TABLES_FIELD(code, BASE);

	memset(row, 0, sizeof(*row));
	row->cfa.kind = CFI_REGISTER;
	row->cfa.reg = code & TABLES_CODE_FROM_FP ? CFI_REG_FP : CFI_REG_SP;
	row->cfa.offset = (int32_t)TABLES_FIELD(code, CFA);
	row->fp = (struct cfi_rule){ .kind = fp ? CFI_AT_CFA : CFI_SAME, .offset = -fp };
	row->base = (struct cfi_rule){ .kind = base ? CFI_AT_CFA : CFI_SAME, .offset = -base };
	row->ra = (struct cfi_rule){ .kind = CFI_AT_CFA, .offset = (int32_t)TABLES_RA_FROM_CFA(fp) };
}

/* Where a register's value is: 0 in the walk's hands, else at that address. */
#define AT_NOWHERE ((uintptr_t)1) /* no address: loads need aligned ones */

/* After plain frames: what is in registers, and what is to be loaded now. */
static void
frame_settle(struct unwind_frame *f, struct unwind_reader *r, uintptr_t sp, uintptr_t fp, uintptr_t fp_at,
	     uintptr_t base_at)
{
	uintptr_t base = f->regs[CFI_REG_BASE];
	bool      have_base = base_at ? unwind_load(r, base_at, &base) : UNWIND_KNOWN(f, CFI_REG_BASE);

	f->known = 0;
	unwind_frame_set(f, CFI_REG_SP, sp);
	if (fp_at == 0 || unwind_load(r, fp_at, &fp))
		unwind_frame_set(f, CFI_REG_FP, fp);
	if (have_base)
		unwind_frame_set(f, CFI_REG_BASE, base);
}

/* Loads by the reader's window, which the caller has at hand. */
#define LOAD(address, ret)                                           \
	do {                                                         \
		if (!unwind_window_has(floor, words, address)) {     \
			if (!unwind_window_prove(r, address))        \
				goto out;                            \
			floor = r->floor;                            \
			words = r->words;                            \
		}                                                    \
		(ret) = unwind_word((address) + shift);              \
	} while (0)

/*
 * Frames of the plain form, one after the other from pcs[n - 1]'s, which is f, for as
 * long as nothing about them is out of the ordinary.  Returns the new n; f is that of
 * pcs[n - 1].
 *
 * Saved registers are not loaded but where they are is kept, since most of them are
 * never asked for.  Frames that keep a frame pointer are told apart by a branch, so
 * that the next one's address is guessed before this one's rules have arrived; theirs
 * is the loop whose instructions are counted.
 */
static inline __attribute__((always_inline)) unsigned UNWIND_NO_SANITIZE
frames_plain(const struct tables *t, struct unwind_reader *r, struct unwind_frame *f, uintptr_t *restrict pcs, unsigned n,
	     unsigned max, uintptr_t shift)
{
	const _Atomic uint64_t *cache = t->cache;
	uintptr_t  floor = r->floor, words = r->words;
	uintptr_t *last = pcs + max - 1;
	intptr_t   at = (intptr_t)n - (intptr_t)max; /* of last; 0: there is room for no more */
	uintptr_t  sp = f->regs[CFI_REG_SP], fp = f->regs[CFI_REG_FP], cfa, ra;
	uintptr_t  fp_at = UNWIND_KNOWN(f, CFI_REG_FP) ? 0 : AT_NOWHERE, base_cfa = 0;
	uint32_t   code = tables_code(t, last[at]), base_code = 0, next, differs;

	while (at < 0) {
		if (fp_at && code & TABLES_CODE_FROM_FP) {
			LOAD(fp_at, fp);
			fp_at = 0;
		}
		differs = code ^ CODE_KEEPS_FP;
		/* fp is not below sp, nor that below the window: both words are in it if the upper one is. */
		while (sp >= floor && KEEPS_FP(differs)) {
			if (!unwind_window_has(floor, words, fp + 8) || fp < sp)
				break;
			ra = arch_pointer_strip(unwind_word(fp + 8 + shift)) - 1;
			if (!tables_code_cached(cache, ra, &next))
				break;
			if (differs & TABLES_BASE_MASK) {
				base_code = differs;
				base_cfa = fp + 16;
			}
			sp = fp + 16;
			fp = unwind_word(fp + shift);
			differs = next ^ CODE_KEEPS_FP;
			last[++at] = ra;
			if (at == 0)
				goto out;
			if (sp < floor)
				__builtin_unreachable(); /* it only grows */
		}
		code = differs ^ CODE_KEEPS_FP;
		if (TABLES_CODE_KIND(code) != TABLES_CODE_PLAIN)
			break;
		cfa = (code & TABLES_CODE_FROM_FP ? fp : sp) + TABLES_FIELD(code, CFA);
		LOAD(cfa + TABLES_RA_FROM_CFA(TABLES_FIELD(code, FP)), ra);
		ra = arch_pointer_strip(ra) - 1;
		if (cfa <= sp)
			break;
		if (!tables_code_cached(cache, ra, &next)) {
			next = tables_code_find(t, ra);
			if (next == TABLES_CODE_NONE)
				break; /* is it code at all? */
		}
		if (TABLES_FIELD(code, FP) != 0)
			fp_at = cfa - TABLES_FIELD(code, FP);
		if (code & TABLES_BASE_MASK) {
			base_code = code;
			base_cfa = cfa;
		}
		sp = cfa;
		code = next;
		last[++at] = ra;
	}
out:
	if (at > (intptr_t)n - (intptr_t)max)
		frame_settle(f, r, sp, fp, fp_at, base_code ? base_cfa - TABLES_FIELD(base_code, BASE) : 0);
	return (unsigned)(at + (intptr_t)max);
}

/* Not inlined: what they keep on the stack must not be there below an expression. */
static __attribute__((noinline)) unsigned UNWIND_NO_SANITIZE
frames_plain_live(const struct tables *t, struct unwind_reader *r, struct unwind_frame *f, uintptr_t *pcs, unsigned n,
		  unsigned max)
{
	return frames_plain(t, r, f, pcs, n, max, 0);
}

static __attribute__((noinline)) unsigned UNWIND_NO_SANITIZE
frames_plain_copy(const struct tables *t, struct unwind_reader *r, struct unwind_frame *f, uintptr_t *pcs, unsigned n,
		  unsigned max)
{
	return frames_plain(t, r, f, pcs, n, max, r->shift);
}

struct walk {
	const struct tables *t;
	struct unwind_frame  f;
	uintptr_t            unknown; /* where there is no table, nor code as far as is known */
	struct unwind_code  *code; /* the leaf's frame pointer is unknown, and to be found on the copy */
	const ucontext_t    *context; /* of the leaf, or NULL */
	uintptr_t           *pcs;
	unsigned             n;
	uint8_t              signals;
	bool                 exact;
};

/*
 * The CFA is in a register that nobody has saved.  Where all frames above are those of
 * helpers, it is what it was when they were interrupted.  Once in a walk.
 */
static __attribute__((noinline)) bool
frame_help(struct walk *w, const struct cfi_row *row)
{
	uintptr_t         apart = w->pcs[0] - w->pcs[w->n - 1];
	const ucontext_t *uc = w->context;

	w->context = NULL;
	if (!uc || w->signals > 0 || w->n < 2 || w->n > 1 + HELPERS_MAX || apart + HELPERS_BYTES > 2 * HELPERS_BYTES ||
	    row->cfa.kind != CFI_REGISTER || UNWIND_KNOWN(&w->f, row->cfa.reg))
		return false;
	return unwind_frame_register(&w->f, uc, row->cfa.reg);
}

/* A frame that no table describes. */
static __attribute__((noinline)) enum unwind_step
frame_undescribed(struct walk *w, struct unwind_reader *r, uintptr_t at, bool leaf, uintptr_t *pc)
{
	enum tables_answer is = TABLES_NO;

	if (leaf && arch_step_stub(r, at, &w->f, pc))
		return UNWIND_ON;
	if (!leaf && !unwind_is_guess(r, w->n - 1, UNWIND_CALLER))
		is = tables_is_entered(w->t, at + 1);
	if (is == TABLES_UNSURE) {
		unwind_unsure(r);
		r->entered = true;
	}
	if (is != TABLES_NO) {
		w->pcs[w->n - 1] = at + 1;
		return UNWIND_ROOT; /* whatever its rules say: glibc's name uc_link as the caller */
	}
	if (!tables_is_code(w->t, at)) {
		w->unknown = at;
		is = leaf || w->n == 1 ? TABLES_YES : tables_looks_return(at + 1); /* a caller must be code */
		if (is == TABLES_NO || (is == TABLES_UNSURE && !unwind_guess(r, w->n - 1, UNWIND_CALLER))) {
			w->n--;
			return UNWIND_LOST;
		}
	}
	return unwind_step_fp(w->t, r, &w->f, at, leaf, pc);
}

/* One frame by its row; *pc is the caller's then. */
static __attribute__((noinline)) enum unwind_step
frame_by_row(struct walk *w, struct unwind_reader *r, uintptr_t at, const struct cfi_row *row, uintptr_t *pc)
{
	bool             leaf = w->exact, unknown = row == &cfi_row_none, sigreturn = false, helped = false, alternate = false;
	enum unwind_step step;
	uintptr_t        fp;

	w->exact = false;
	if (ARCH_SIGRETURN_BY_CODE && (unknown || row->signal_frame)) {
		unsigned verdict = leaf ? unwind_verdict_at(r, at) : unwind_verdict(at + 1);

		sigreturn = verdict ? verdict & UNWIND_VERDICT_SIGRETURN : arch_is_at_sigframe(r, &w->f);
		/* What comes next is in the kernel's frame, or is not. */
		if (!verdict && unknown && (leaf || !unwind_guess(r, w->n - 1, sigreturn ? UNWIND_BACK : UNWIND_PLAIN))) {
			unwind_unsure(r);
			return UNWIND_LOST;
		}
	}
	if (unknown && !sigreturn)
		return frame_undescribed(w, r, at, leaf, pc);
	/* No call leads there, so its name and its line are those of the exact pc. */
	if ((row->signal_frame || sigreturn) && !leaf)
		w->pcs[w->n - 1] = at + 1;
	if (row->signal_frame || sigreturn) {
		if (++w->signals > SIGNAL_FRAMES_MAX)
			return UNWIND_LOST;
		alternate = unwind_window_alternate(r, w->f.regs[CFI_REG_SP] + ARCH_SIGFRAME_UCONTEXT);
	}
	if (w->code && !leaf && !UNWIND_KNOWN(&w->f, CFI_REG_FP) && row->cfa.kind == CFI_REGISTER &&
	    row->cfa.reg == CFI_REG_FP && unwind_recover_fp(w->t, w->code, r, w->f.regs[CFI_REG_SP], at, &fp)) {
		unwind_frame_set(&w->f, CFI_REG_FP, fp);
		w->code->fp = fp;
	}
	do {
		step = sigreturn ? arch_step_sigreturn(r, &w->f, pc) : frame_step(row, r, &w->f, leaf, pc);
		/* What came of help must be code that the tables know. */
		if (helped && step == UNWIND_ON && tables_code(w->t, *pc - 1) == TABLES_CODE_NONE)
			step = UNWIND_LOST;
	} while (step == UNWIND_LOST && !leaf && (helped = frame_help(w, row)));
	if (step == UNWIND_ON && (row->signal_frame || sigreturn)) {
		w->exact = true;
		r->here = false;
		if (!r->copy)
			unwind_window_interrupted(r, w->f.regs[CFI_REG_SP], alternate);
	} else if (step == UNWIND_ROOT)
		unwind_window_learn(r, at, w->f.regs[CFI_REG_SP]);
	return step;
}

/* Its row has stack of its own: below an expression there is none to spare. */
static __attribute__((noinline)) enum unwind_step
frame_by_code(struct walk *w, struct unwind_reader *r, uintptr_t at, uint32_t code, uintptr_t *pc)
{
	struct cfi_row row;

	row_of_plain(code, &row);
	return frame_by_row(w, r, at, &row, pc);
}

/* One frame of any form. */
static enum unwind_step
frame_any(struct walk *w, struct unwind_reader *r, uintptr_t at, uintptr_t *pc)
{
	uint32_t code = tables_code(w->t, at);

	if (TABLES_CODE_KIND(code) == TABLES_CODE_PLAIN)
		return frame_by_code(w, r, at, code, pc);
	return frame_by_row(w, r, at, code == TABLES_CODE_NONE ? &cfi_row_none : tables_palette_row(TABLES_CODE_ROW(code)), pc);
}

static int
walk_tables(struct unwind_reader *r, const struct unwind_regs *regs, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	struct tables_reader reader;
	struct walk          w;
	uintptr_t            pc = arch_pointer_strip(regs->pc);
	unsigned             n = 0, before;
	enum unwind_step     step;

	w.t = tables_enter(&reader);
	w.exact = regs->exact;
	w.unknown = 0;
	w.code = regs->fp_unknown ? regs->code : NULL;
	if (w.code)
		w.code->fp = 0;
	w.signals = 0;
	w.context = regs->ucontext;
	w.pcs = pcs;
	if (!w.t || max == 0 || !unwind_code_plausible(pc)) {
		tables_leave(&reader);
		return -1;
	}
	frame_start(&w.f, regs);
	do {
		pcs[n++] = w.exact ? pc : pc - 1;
		before = n;
		n = r->copy ? frames_plain_copy(w.t, r, &w.f, pcs, n, max) : frames_plain_live(w.t, r, &w.f, pcs, n, max);
		w.exact &= n == before;
		if (n == 1)
			unwind_frame_rest(&w.f, regs);
		w.n = n;
		step = frame_any(&w, r, pcs[n - 1], &pc);
		n = w.n;
		if (step == UNWIND_GUESS)
			step = unwind_guess(r, n, UNWIND_CALLER) ? UNWIND_ON : UNWIND_LOST;
	} while (step == UNWIND_ON && n < max);
	tables_leave(&reader);
	if (w.unknown)
		unwind_want(w.unknown);
	*ret_truncated = step != UNWIND_ROOT;
	return (int)n;
}

static int
open_tables(void)
{
	return ARCH_HAVE_TABLES ? 0 : -ENOSYS;
}

const struct unwinder unwind_by_tables = { .name = "tables", .open = open_tables, .tables = true, .capture = walk_tables };
