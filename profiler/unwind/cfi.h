/*
 * cfi.h - DWARF call frame information of .eh_frame, as rows of unwind rules.
 *
 * A row says, for a range of pcs, how to get from a frame's registers to its
 * caller's: where the CFA (the caller's sp) is, and where its pc, its frame pointer and
 * one more base register were saved.  Other registers are not followed.
 */
#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch.h"

enum cfi_kind {
	CFI_UNKNOWN,    /* not given; the walk must end here */
	CFI_UNDEFINED,  /* of the return address: this is the outermost frame */
	CFI_SAME,       /* still in its register */
	CFI_AT_CFA,     /* saved at CFA + offset */
	CFI_IS_CFA,     /* its value is CFA + offset */
	CFI_REGISTER,   /* value of reg, plus offset where it is the CFA's rule */
	CFI_AT_EXPR,    /* saved where the expression points */
	CFI_IS_EXPR,    /* the expression's value */
};

struct cfi_rule {
	uint8_t  kind;
	uint8_t  reg;
	uint16_t expr_size;
	int32_t  offset; /* of an expression: where it starts in the section */
};

struct cfi_row {
	struct cfi_rule cfa, fp, base, ra;
	bool            signal_frame; /* its pc is exact, not a return address */
};

/* A copy of a section and where it is in the process. */
struct cfi_section {
	const uint8_t *data;
	size_t         size;
	uintptr_t      address;
};

/* From pc on, until the next call, row holds.  Non-zero ends the parse. */
typedef int cfi_row_fn(void *arg, uintptr_t pc, const struct cfi_row *row);

/* The row of pcs that no description covers. */
extern const struct cfi_row cfi_row_none;

/*
 * cfi_parse - all rows of one object, by ascending pc
 *
 * header is .eh_frame_hdr, whose search table gives the order; frames is
 * .eh_frame, which may go on past its end.  Every offset in them is checked;
 * descriptions that make no sense become cfi_row_none and are counted; so are the rest where they
 * overlap for long.
 * ret_extent: where .eh_frame's last description ends.
 *
 *   returns  0; -ENOENT without a usable search table; what fn returned
 *   signals  not from a handler
 *   source   profiler/unwind/cfi.c
 */
int cfi_parse(const struct cfi_section *header, const struct cfi_section *frames, cfi_row_fn *fn, void *arg,
	      size_t *ret_bad, size_t *ret_extent);

/* A function begins at pc and is described at offset. */
typedef void cfi_function_fn(void *arg, uintptr_t pc, size_t offset);

/* All functions of frames, as they come, to the terminator or the end; for an object without a
 * search table.  Those whose CIEs overlap for long are left out.  0, or -EINVAL where the records do not follow each
 * other. */
int cfi_functions(const struct cfi_section *frames, cfi_function_fn *fn, void *arg);

#endif
