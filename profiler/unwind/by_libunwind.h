/*
 * by_libunwind.h - stacks walked by libunwind, from copies.
 *
 * The handler copies registers and the lower part of the stack, a thread of ours walks
 * the copy later: libunwind takes locks and memory, and never runs in a handler or hook.
 */
#ifndef UNWIND_BY_LIBUNWIND_H
#define UNWIND_BY_LIBUNWIND_H

#include <stdint.h>

#include "unwind.h"

/*
 * unwind_remote_open - loads the library, once
 *
 *   returns  0; -ENOENT: it is not installed; -ENOSYS: this build has no use for it, or
 *            the library lacks a function
 *   threads  any, not from a handler
 */
int  unwind_remote_open(void);
/* As unwind_taken(); 0: not even the leaf. */
unsigned unwind_remote_walk(const struct unwind_taken *t, uintptr_t *pcs, unsigned max, int *ret_truncated);
/* In a child. */
void unwind_remote_forked(void);

#endif
