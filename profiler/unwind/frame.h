/*
 * frame.h - what a walk knows of the frame it stands in.
 */
#ifndef UNWIND_FRAME_H
#define UNWIND_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "cfi.h"
#include "unwind.h"
#include "unwind_window.h"

/* What came of the way to the caller.  Guess: as on, if a call returns there, which is not known yet. */
enum unwind_step { UNWIND_ON, UNWIND_ROOT, UNWIND_LOST, UNWIND_GUESS };

struct unwind_frame {
	uintptr_t regs[CFI_REGS];
	uint64_t  known; /* bit for each of regs */
};

#define UNWIND_KNOWN(f, r) ((f)->known >> (r) & 1)

static inline void
unwind_frame_set(struct unwind_frame *f, unsigned reg, uintptr_t value)
{
	f->regs[reg] = value;
	f->known |= (uint64_t)1 << reg;
}

/* All that an interrupted leaf has, by DWARF numbers; on aarch64 but sp. */
void unwind_frame_registers(struct unwind_frame *f, const void *ucontext);
/* One of them; false: a ucontext does not have it. */
bool unwind_frame_register(struct unwind_frame *f, const void *ucontext, unsigned reg);
/* What only a rule of an unusual form may ask for, and only in the leaf. */
void unwind_frame_rest(struct unwind_frame *f, const struct unwind_regs *regs);
/* The value of the rule's expression, run with *cfa on its stack unless that is NULL. */
bool unwind_expression(const struct cfi_rule *rule, struct unwind_reader *r, const struct unwind_frame *f,
		       const uintptr_t *cfa, uintptr_t *ret);

#endif
