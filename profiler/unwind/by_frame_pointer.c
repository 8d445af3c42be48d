/*
 * by_frame_pointer.c - walks a stack by frame pointers, every load proven before it is made.
 *
 * A function compiled with frame pointers keeps the address of its caller's
 * frame at [fp] and the return address beside it:
 *
 *     higher   | return address |        fp must be aligned, must lie above the
 *              | caller's fp  --+--->    previous one by at most UNWIND_FRAME_BYTES_MAX,
 *     fp  -->  | locals ...     |        and its page must answer a probe
 *     sp  -->
 *
 * The chain is only as good as the code it runs through.  Code without frame
 * pointers uses that register for anything, so what stands in it proves nothing.
 * Which pages can be read: unwind_window.c.
 *
 * What a stranger would get wrong:
 * - The guess of a thread's stack bounds is not used at all, so that alternate
 *   stacks, fibers and the main thread need no case of their own.
 * - What stands beside a saved frame pointer is believed only if a call returns there
 *   (tables_code.c), which a thread of ours finds out (verdict.c, guess.c); the
 *   step itself is undescribed.c's, which the walk by tables takes through code that no
 *   table describes.
 *
 * Why not a handler for SIGSEGV that repairs the load: that signal is the daemon's.
 *
 * Tests: tests/unwind/test_unwind.c.
 */
#include <config.h>

#include "unwind.h"

#include <errno.h>
#include <stdbool.h>

#include "frame.h"
#include "tables_lookup.h"
#include "undescribed.h"
#include "unwind_window.h"
#include "want.h"

static void
frame_of(struct unwind_frame *f, const struct unwind_regs *regs)
{
	f->known = 0;
	unwind_frame_set(f, CFI_REG_SP, regs->sp);
	unwind_frame_set(f, CFI_REG_FP, regs->fp);
	if (regs->lr)
		unwind_frame_set(f, CFI_REG_RA, regs->lr);
}

static int
walk_frames(struct unwind_reader *r, const struct unwind_regs *regs, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	struct tables_reader reader;
	struct unwind_frame  f;
	const struct tables *t;
	uintptr_t            pc = arch_pointer_strip(regs->pc), at;
	enum unwind_step     step = UNWIND_LOST;
	unsigned             n = 0;
	bool                 leaf = regs->exact;

	*ret_truncated = 1;
	if (max == 0 || !unwind_code_plausible(pc))
		return 0;
	pcs[n++] = regs->exact ? pc : pc - 1;
	if (regs->fp_unknown || !ARCH_HAVE_FRAMES)
		return (int)n;
	frame_of(&f, regs);
	t = tables_enter(&reader);
	if (t && !tables_is_code(t, pcs[0]))
		unwind_want(pcs[0]);
	for (at = pcs[0]; leaf || f.regs[CFI_REG_FP] != 0; leaf = false) {
		step = unwind_step_fp(t, r, &f, at, leaf, &pc);
		if (step == UNWIND_GUESS && unwind_guess(r, n, UNWIND_CALLER)) {
			r->chain = true;
			step = UNWIND_ON;
		}
		if (step != UNWIND_ON || n == max)
			break;
		pcs[n++] = at = pc - 1;
	}
	tables_leave(&reader);
	/* A guess that nobody can mark any more ends it as room does. */
	*ret_truncated = n < 2 || (step != UNWIND_LOST && (leaf || f.regs[CFI_REG_FP] != 0));
	return (int)n;
}

static int
open_frames(void)
{
	return ARCH_HAVE_FRAMES ? 0 : -ENOSYS;
}

const struct unwinder unwind_by_frame_pointer = { .name = "frame-pointer", .open = open_frames, .capture = walk_frames };
