/*
 * undescribed.h - from frames that no table describes to their callers.
 *
 * All signal-safe; *pc is the caller's where the answer is UNWIND_ON or true.
 */
#ifndef UNWIND_UNDESCRIBED_H
#define UNWIND_UNDESCRIBED_H

#include <stdbool.h>
#include <stdint.h>

#include "tables.h"
#include "frame.h"

/* From the code at `at` by the frame pointer, and only to where a call returns to; leaf: `at`
 * is the exact pc of what was interrupted, which may have no frame.  t may be NULL.
 * UNWIND_GUESS: nobody knows yet whether a call returns there. */
enum unwind_step unwind_step_fp(const struct tables *t, struct unwind_reader *r, struct unwind_frame *f, uintptr_t at,
				bool leaf, uintptr_t *pc);

#endif
