/*
 * guess.h - callers that a walk has guessed, until they are proven.
 *
 * The first two are signal-safe.
 */
#ifndef UNWIND_GUESS_H
#define UNWIND_GUESS_H

#include <stdint.h>

#include "unwind_window.h"

/* Those of n frames are marked, for unwind_prove(). */
void     unwind_guesses_mark(const struct unwind_reader *r, uintptr_t *pcs, unsigned n);
/* The stack ends before the first of them, if nobody will prove them.  Returns the new n. */
unsigned unwind_guesses_cut(const struct unwind_reader *r, uintptr_t *pcs, unsigned n, int *ret_truncated);

#endif
