/*
 * trails.h - sites of stacks that were walked before, found without a walk.
 *
 * A program allocates at the same few places all the time.  From there a walk costs some thousand cycles where what it reads has
 * left the processor's caches, and the look at a trail (unwind/trail.h) some hundred.
 */
#ifndef COLLECT_HEAP_TRAILS_H
#define COLLECT_HEAP_TRAILS_H

#include <stdbool.h>
#include <stdint.h>

#include "site.h"
#include "unwind.h"

/* Both in any thread, interrupted anywhere, in a hook. */

/* The site of a call for b->size bytes, as heap_site_find() would find it after a walk, and the weight, as
 * heap_weight() has it for that rate.  False: not known here; then the site is 0, and the weight anything. */
bool heap_trails_find(const struct unwind_regs *regs, uint32_t labels, uint64_t rate, struct heap_block *b);
/* Keeps b's site and weight for heap_trails_find(), if there is room and the stack has a trail.  The walk
 * must be whole, with no frame left out, and the site what heap_site_find() has said of it. */
void heap_trails_add(const struct unwind_regs *regs, const uintptr_t *pcs, unsigned n, uint32_t labels,
		     uint64_t rate, const struct heap_block *b);

#endif
