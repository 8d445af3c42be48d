/*
 * arch_code.h - any other architecture: what the instructions around an address tell of it.
 */
#ifndef ARCH_CODE_H
#define ARCH_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "verdict.h"

/* How many bytes before and behind a leaf's pc it takes to judge that. */
#define ARCH_LEAF_BEFORE 0
#define ARCH_LEAF_BEHIND 0

/* The bits of verdict.h; at[-32] to at[31] are there, 0 where there is no memory.  Where
 * calls cannot be told from other instructions, all code may be behind one. */
static inline unsigned
arch_judge(uintptr_t pc, const unsigned char *at)
{
	(void)pc;
	(void)at;
	return UNWIND_VERDICT_KNOWN | UNWIND_VERDICT_CALL;
}

/* Where the jump at these bytes, which are at pc, leads to; 0: there is none, or that cannot be
 * told.  Locks that a call at the very end of glibc's function waits for are not shown then. */
static inline uintptr_t
arch_jump_target(const unsigned char *at, size_t size, uintptr_t pc)
{
	(void)at;
	(void)size;
	(void)pc;
	return 0;
}

#endif
