/*
 * recover.h - a frame pointer that nobody has told, found on the stack.
 */
#ifndef UNWIND_RECOVER_H
#define UNWIND_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "memory.h"
#include "tables.h"
#include "unwind_window.h"

#define UNWIND_CODE_LINES     128 /* powers of two */
#define UNWIND_CODE_LINE      64
#define UNWIND_CODE_FUNCTIONS 64

/*
 * What was read of code, for all stacks of one dump: most threads wait in few places, and
 * a system call for each look costs more than the rest.  Zeroed at the dump's begin, since
 * code may be unloaded between two.
 */
struct unwind_code {
	uintptr_t at[UNWIND_CODE_LINES]; /* 0: empty */
	uint8_t   line[UNWIND_CODE_LINES][UNWIND_CODE_LINE];
	struct {
		uintptr_t pc, begin; /* pc 0: empty; begin 0: not to be found */
		intptr_t  bytes;     /* of its frame; below 0: not to be told */
	} function[UNWIND_CODE_FUNCTIONS];
	uintptr_t fp; /* what the last walk has found, 0: it needed none, or found none */
	const struct memory *memory; /* to read by; NULL: process_vm_readv() is allowed */
};

/* The frame pointer of the function that pc stands in, called out of at sp; r is a copy of
 * the stack.  False where there is no proof.  Not from a handler. */
bool unwind_recover_fp(const struct tables *t, struct unwind_code *code, struct unwind_reader *r, uintptr_t sp, uintptr_t pc,
		       uintptr_t *ret);

/* ---- for arch_recover.h ---- */

/* What a call is of: nothing, another function than the one asked about, that one, or whatever
 * a pointer leads to. */
enum unwind_call { UNWIND_CALL_NONE, UNWIND_CALL_OTHER, UNWIND_CALL_THIS, UNWIND_CALL_POINTER };

/* Code that may be unloaded meanwhile; false: it is. */
bool unwind_code_copy(struct unwind_code *c, uintptr_t address, void *buf, size_t size);

#endif
