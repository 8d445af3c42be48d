/*
 * unwind_recover.h - a frame pointer that nobody has told, found on the stack.
 */
#ifndef STACKS_UNWIND_RECOVER_H
#define STACKS_UNWIND_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "tables.h"
#include "unwind_load.h"

/* The frame pointer of the function that pc stands in, called out of at sp; r is a copy of
 * the stack.  False where there is no proof.  Not from a handler. */
bool unwind_recover_fp(const struct tables *t, struct unwind_reader *r, uintptr_t sp, uintptr_t pc, uintptr_t *ret);

#endif
