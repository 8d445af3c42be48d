/*
 * trail.h - a walk that was done before, known again by the words that it has read.
 *
 * Where a walk by tables finds the next return address follows from the pc, and now and then from a
 * saved frame pointer.  So above the same pc the same words in the same places are the same walk, and
 * who has done it once can compare them instead.  A walk waits for each word, and then for the rules that
 * say where the next one is; the places of these are known, so the processor loads all of them at once.
 *
 * All frames of such a stack but the root must be of the plain form (tables_lookup.h).  On aarch64 none of the
 * stacks that were tried is so, and they are walked.
 */
#ifndef UNWIND_TRAIL_H
#define UNWIND_TRAIL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind.h"

#define TRAIL_WORDS 57

struct trail {
	_Atomic uint32_t count;
	_Atomic uint32_t live; /* 1 + what is in the hook's frame pointer, above sp; 0: that is not needed */
	_Atomic uint64_t words[TRAIL_WORDS]; /* trail.c */
};

/*
 * trail_room - bytes from sp to the end of the calling thread's own stack
 *
 * 0: it is another stack, or where its end is was not found out yet.  Signal-safe.
 */
size_t trail_room(uintptr_t sp);
/*
 * trail_make - the trail of a walk that a hook has done, with what came of it
 *
 * False: not all of that follows from these words, or they are too many; or valgrind runs the process,
 * which would report words that are compared and were never written.  The rules of these pcs must be for
 * ever (generations_settled()).  Not from a handler.
 */
bool   trail_make(struct trail *ret, const struct unwind_regs *regs, const uintptr_t *pcs, unsigned n);
/*
 * trail_fits - would a walk from here, at the pc that it was made with, find the same?
 *
 * room: trail_room(); no more is read.  Another thread may write *t meanwhile.  The answer is worth nothing
 * then, which is the caller's to find out.  Signal-safe.
 */
bool   trail_fits(const struct trail *t, const struct unwind_regs *regs, size_t room);

#endif
