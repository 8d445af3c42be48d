/*
 * trail.c - the words that a walk by tables has read, and the look at them.
 *
 *     sp ->  ...
 *            return address    where the rules of pcs[0] say; pcs[1] + 1
 *            ...
 *            return address    where the rules of pcs[1] say; pcs[2] + 1
 *
 * A word of a trail has 48 bits of what is there, 15 bits of how many words above sp that is, and one that
 * is set if it is counted from sp: a frame pointer.
 *
 * What a stranger would get wrong: return addresses of calls that are over lie about everywhere, so
 * the words prove nothing without their places.  Each place follows from the words before it.
 *
 * Tests: tests/unwind/test_trail.c.
 */
#include <config.h>

#include "trail.h"

#include "tables_lookup.h"
#include "under_valgrind.h"
#include "unwind_window.h"

#define VALUE_BITS  48
#define VALUE_MASK  (((uint64_t)1 << VALUE_BITS) - 1)
#define FROM_SP     ((uint64_t)1 << 63)
#define PLACE(word) (((word) & ~FROM_SP) >> VALUE_BITS << 3) /* bytes above sp */
#define PLACE_MAX   PLACE(~(uint64_t)0)
#define NOWHERE     UINTPTR_MAX

/* A walk that is done again, by the pcs that are known. */
struct again {
	const struct tables *tables;
	struct unwind_reader reader;
	uintptr_t sp, fp; /* of the hook's caller */
	uintptr_t cfa; /* this and fp_at in bytes above sp */
	uintptr_t fp_at; /* where the frame pointer was saved last; NOWHERE: the hook's caller has it still */
	bool      fp_taken; /* it is in the trail */
	struct trail *trail;
};

static bool
take(struct trail *t, uintptr_t at, uint64_t value, uint64_t from_sp)
{
	uint32_t count = atomic_load_explicit(&t->count, memory_order_relaxed);

	if (count == TRAIL_WORDS || at > PLACE_MAX || at % sizeof(uintptr_t) != 0 || value > VALUE_MASK)
		return false;
	atomic_store_explicit(&t->words[count], from_sp | (uint64_t)at << (VALUE_BITS - 3) | value, memory_order_relaxed);
	atomic_store_explicit(&t->count, count + 1, memory_order_relaxed);
	return true;
}

/* The frame pointer, which the CFA is counted from: above sp. */
static bool
take_fp(struct again *a, uintptr_t *ret)
{
	uintptr_t fp = a->fp;

	if (a->fp_at != NOWHERE && !unwind_load(&a->reader, a->sp + a->fp_at, &fp))
		return false;
	*ret = fp - a->sp;
	if (*ret > PLACE_MAX)
		return false;
	if (a->fp_taken)
		return true;
	a->fp_taken = true;
	if (a->fp_at != NOWHERE)
		return take(a->trail, a->fp_at, *ret, FROM_SP);
	atomic_store_explicit(&a->trail->live, (uint32_t)*ret + 1, memory_order_relaxed);
	return true;
}

/* From a frame to its caller's, if that is where `to` is. */
static bool
step(struct again *a, uintptr_t pc, uintptr_t to)
{
	uint32_t  code = tables_code(a->tables, pc);
	uintptr_t from = a->cfa, at, ra;

	if (TABLES_CODE_KIND(code) != TABLES_CODE_PLAIN || (code & TABLES_CODE_FROM_FP && !take_fp(a, &from)))
		return false;
	from += TABLES_FIELD(code, CFA);
	at = from + (uintptr_t)TABLES_RA_FROM_CFA(TABLES_FIELD(code, FP));
	if (from <= a->cfa || !unwind_load(&a->reader, a->sp + at, &ra) || arch_pointer_strip(ra) - 1 != to)
		return false;
	a->cfa = from;
	if (TABLES_FIELD(code, FP) != 0) {
		a->fp_at = from - TABLES_FIELD(code, FP);
		a->fp_taken = false;
	}
	return take(a->trail, at, to + 1, 0);
}

static bool
is_root(const struct tables *t, uintptr_t pc)
{
	uint32_t code = tables_code(t, pc);

	return TABLES_CODE_KIND(code) == TABLES_CODE_PALETTE &&
	       tables_palette_row(TABLES_CODE_ROW(code))->ra.kind == CFI_UNDEFINED;
}

__attribute__((hot)) size_t
trail_room(uintptr_t sp)
{
	return sp % sizeof(uintptr_t) == 0 ? unwind_window_own(sp) : 0;
}

bool
trail_make(struct trail *ret, const struct unwind_regs *regs, const uintptr_t *pcs, unsigned n)
{
	struct tables_reader reader;
	struct again         a = { .sp = regs->sp, .fp = regs->fp, .fp_at = NOWHERE, .trail = ret };
	unsigned             i = 0;

	atomic_store_explicit(&ret->count, 0, memory_order_relaxed);
	atomic_store_explicit(&ret->live, 0, memory_order_relaxed);
	unwind_window_open(&a.reader, regs->sp);
	a.tables = tables_enter(&reader);
	if (!under_memcheck && a.tables && a.reader.words && n > 1 && pcs[0] == arch_pointer_strip(regs->pc) - 1)
		while (i < n - 1 && step(&a, pcs[i], pcs[i + 1]))
			i++;
	if (i > 0 && !(i == n - 1 && is_root(a.tables, pcs[i])))
		i = 0;
	tables_leave(&reader);
	return i > 0;
}

/* From the leaf up to the first word that differs: so none is read that a walk would not read. */
__attribute__((hot)) bool UNWIND_NO_SANITIZE
trail_fits(const struct trail *t, const struct unwind_regs *regs, size_t room)
{
	uint32_t  count = atomic_load_explicit(&t->count, memory_order_relaxed);
	uint32_t  live = atomic_load_explicit(&t->live, memory_order_relaxed);
	uintptr_t is;
	uint64_t  word;

	if (live && regs->fp - regs->sp != live - 1)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		word = atomic_load_explicit(&t->words[i], memory_order_relaxed);
		if (PLACE(word) >= room)
			return false;
		is = unwind_word(regs->sp + PLACE(word));
		if ((word & FROM_SP ? is - regs->sp : arch_pointer_strip(is)) != (word & VALUE_MASK))
			return false;
	}
	return count > 0;
}
