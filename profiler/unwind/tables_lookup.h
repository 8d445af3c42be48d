/*
 * tables_lookup.h - from a pc to its rules, for the walk.
 *
 * Rules are a code of 28 bits.  What compilers write for nearly every function fits into
 * it whole: the CFA from sp or the frame pointer, the return address where a call puts
 * it, the frame pointer and one more register saved below.  Anything else is the number
 * of a row in the palette.
 *
 *     kind:2 | cfa from fp:1 | cfa offset | slot of fp | slot of base
 *
 * Inline, because a walk does little else; nobody but the walk and the builder needs it.
 */
#ifndef UNWIND_TABLES_LOOKUP_H
#define UNWIND_TABLES_LOOKUP_H

#include <stdatomic.h>
#include <stdint.h>

#include "tables.h"
#include "tables_object.h"
#include "tables_palette.h"

#define TABLES_CODE_BITS 28
#define TABLES_CODE_MASK (((uint32_t)1 << TABLES_CODE_BITS) - 1)

enum { TABLES_CODE_NONE, TABLES_CODE_PLAIN, TABLES_CODE_PALETTE };

#define TABLES_CODE_KIND(code) ((code) & 3)
#define TABLES_CODE_ROW(code)  ((uint16_t)((code) >> 2))
#define TABLES_CODE_FROM_FP    4U
/* Offsets are in words, slots in words below the CFA; slot 0: the register still holds it. */
#define TABLES_CFA_SHIFT 3
#define TABLES_CFA_BITS  11 /* 16 KiB */
#define TABLES_FP_BITS   (ARCH_FRAME_RECORD ? 9 : 7) /* a record lies at the bottom of its frame */
#define TABLES_BASE_BITS (ARCH_FRAME_RECORD ? 5 : 7)
#define TABLES_FP_SHIFT   (TABLES_CFA_SHIFT + TABLES_CFA_BITS)
#define TABLES_BASE_SHIFT (TABLES_FP_SHIFT + TABLES_FP_BITS)

#define TABLES_BASE_MASK  (((1U << TABLES_BASE_BITS) - 1) << TABLES_BASE_SHIFT)

/* Where a plain frame keeps its return address. */
#define TABLES_RA_FROM_CFA(fp_slot) (ARCH_FRAME_RECORD ? 8 - (intptr_t)(fp_slot) : -8)

/* Bytes. */
#define TABLES_FIELD(code, field) (((code) >> TABLES_##field##_SHIFT & ((1U << TABLES_##field##_BITS) - 1)) * 8U)

#define TABLES_CACHE_BITS 12

struct tables_range {
	uintptr_t start, limit;
};

struct tables {
	size_t                count, map_bytes;
	struct tables        *limbo_next;
	_Atomic uint64_t      cache[1 << TABLES_CACHE_BITS]; /* the rest of the pc, then a code */
	struct tables_range  *ranges; /* all executable mappings, by address, neighbours joined */
	size_t                range_count, ranges_bytes;
	size_t                without; /* objects with code and without tables ... */
	char                  without_path[TABLES_PATH_MAX]; /* ... the first of them */
	uint64_t              files; /* which are mapped executable, and where: a hash */
	struct tables_object *objects[];
};

/* Functions of like size lie at distances of a page or so: the next bits are stirred in.
 * Together with the pc's upper bits, which the entry holds, the place tells all of a pc. */
static inline uintptr_t
tables_cache_at(uintptr_t pc)
{
	return (pc ^ pc >> 7) & ((1 << TABLES_CACHE_BITS) - 1);
}

/* ---- tables_code.c; all but the first two are signal-safe ---- */

/* Room for so many ranges; then each, by address.  What finds no room is left out. */
int  tables_ranges_room(struct tables *t, size_t count);
void tables_ranges_put(struct tables *t, uintptr_t start, uintptr_t limit);
/* Was the address in an executable mapping when the generation was made? */
bool tables_is_code(const struct tables *t, uintptr_t pc);
/* Does a call return to pc, as far as its code tells?  t may be NULL.  Unsure: nobody has
 * looked at the code yet. */
enum tables_answer { TABLES_NO, TABLES_YES, TABLES_UNSURE };
enum tables_answer tables_is_return(const struct tables *t, uintptr_t pc);
/* The same by its code alone, wherever it is. */
enum tables_answer tables_looks_return(uintptr_t pc);
/* ---- tables.c, signal-safe ---- */

/* Where a stack that was made by hand begins (makecontext(3)): no call leads there, so it is
 * described from its first byte on, pc - 1 is nobody's, and it has no caller. */
enum tables_answer tables_is_entered(const struct tables *t, uintptr_t pc);
/* Are the rules there those of the return from a handler? */
bool tables_is_signal_frame(const struct tables *t, uintptr_t pc);

/* Looks it up and remembers it. */
uint32_t tables_code_find(const struct tables *t, uintptr_t pc);

/* The code of an exact pc's rules where it is remembered, with anything above
 * TABLES_CODE_BITS; false: ask tables_code_find(). */
static inline bool
tables_code_cached(const _Atomic uint64_t *cache, uintptr_t pc, uint32_t *ret)
{
	uint64_t entry = atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)&cache[tables_cache_at(pc)],
					      memory_order_relaxed);

	*ret = (uint32_t)entry;
	return __builtin_expect(entry >> TABLES_CODE_BITS == pc >> TABLES_CACHE_BITS, 1);
}

static inline uint32_t
tables_code(const struct tables *t, uintptr_t pc)
{
	uint32_t code;

	return tables_code_cached(t->cache, pc, &code) ? code & TABLES_CODE_MASK : tables_code_find(t, pc);
}

/* A register that was saved below the CFA, or was not: its slot.  -1: neither. */
static inline int
tables_slot_of(const struct cfi_rule *rule, unsigned bits)
{
	uint32_t below = -(uint32_t)rule->offset;

	if (rule->kind == CFI_SAME)
		return 0;
	/* aligned, not zero, and in range; above the CFA it is huge */
	if (rule->kind != CFI_AT_CFA || below % 8 != 0 || below / 8 - 1 >= (1U << bits) - 1)
		return -1;
	return (int)(below / 8);
}

/* Is the return address where a plain row has it? */
static inline bool
tables_ra_plain(const struct cfi_row *row)
{
	return row->ra.kind == CFI_AT_CFA && (!ARCH_FRAME_RECORD || row->fp.kind == CFI_AT_CFA) &&
	       row->ra.offset == TABLES_RA_FROM_CFA(-row->fp.offset);
}

/* The code of all rules but the CFA's, TABLES_CODE_NONE unless they are of the usual form. */
static inline uint32_t
tables_code_saved(const struct cfi_row *row)
{
	int fp = tables_slot_of(&row->fp, TABLES_FP_BITS), base = tables_slot_of(&row->base, TABLES_BASE_BITS);

	if ((fp | base) < 0 || !tables_ra_plain(row))
		return TABLES_CODE_NONE;
	return TABLES_CODE_PLAIN | (uint32_t)fp << TABLES_FP_SHIFT | (uint32_t)base << TABLES_BASE_SHIFT;
}

/* Adds the CFA's rule to it. */
static inline uint32_t
tables_code_plain(const struct cfi_row *row, uint32_t saved)
{
	uint32_t cfa = (uint32_t)row->cfa.offset;
	bool     from_fp = row->cfa.reg == CFI_REG_FP;

	if (saved == TABLES_CODE_NONE || row->signal_frame || row->cfa.kind != CFI_REGISTER ||
	    (!from_fp && row->cfa.reg != CFI_REG_SP) || (cfa & ~(((1U << TABLES_CFA_BITS) - 1) * 8)) != 0)
		return TABLES_CODE_NONE;
	return saved | (from_fp ? TABLES_CODE_FROM_FP : 0) | cfa / 8 << TABLES_CFA_SHIFT;
}

#endif
