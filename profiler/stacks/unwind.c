/*
 * unwind.c - call stacks by frame pointers, every load proven before it is made.
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
 * - A leaf interrupted before its frame is made, or after it is undone, hides its
 *   caller.  Only instructions that leave no doubt are looked at (see
 *   leaf_return_address()); a wrong frame is worse than a missing one.
 *
 * Why not a handler for SIGSEGV that repairs the load: that signal is the daemon's.
 *
 * Tests: tests/test_unwind.c.
 */
#include <config.h>

#include "unwind.h"
#include "unwind_load.h"
#include "unwind_remote.h"
#include "unwind_tables.h"
#include "unwind_undescribed.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

static atomic_bool by_tables;

#if UNWIND_HAVE_FRAMES

static bool UNWIND_NO_SANITIZE
code_read(uintptr_t pc, unsigned char *bytes, size_t size)
{
	size_t i;

	if (!unwind_probe(pc) || !unwind_probe(pc + size - 1))
		return false;
	for (i = 0; i < size; i++)
		bytes[i] = ((const volatile unsigned char *)pc)[i];
	return true;
}

/*
 * The return address of an interrupted leaf that has no frame, 0 when it has one
 * or when that is not certain.
 */
#if defined(__x86_64__)
static uintptr_t
leaf_return_address(struct unwind_reader *r, const struct unwind_regs *regs)
{
	static const unsigned char push_mov[] = { 0x55, 0x48, 0x89, 0xe5 };
	static const unsigned char endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	unsigned char              at[8], before = 0;
	uintptr_t                  ret = 0;

	if (!code_read(regs->pc, at, sizeof(at)))
		return 0;
	if (memcmp(at, push_mov, sizeof(push_mov)) == 0 || /* push %rbp; mov %rsp,%rbp */
	    (memcmp(at, endbr, sizeof(endbr)) == 0 && memcmp(at + 4, push_mov, sizeof(push_mov)) == 0) ||
	    at[0] == 0xc3 || at[0] == 0xc2 || (at[0] == 0xf3 && at[1] == 0xc3)) /* ret */
		return unwind_load(r, regs->sp, &ret) ? ret : 0;
	if (memcmp(at, push_mov + 1, 3) == 0 && code_read(regs->pc - 1, &before, 1) && before == push_mov[0])
		return unwind_load(r, regs->sp + 8, &ret) ? ret : 0;
	return 0;
}
#else
static uintptr_t
leaf_return_address(struct unwind_reader *r, const struct unwind_regs *regs)
{
	uint32_t at[2];

	(void)r;
	if (unwind_in_stub(regs->pc))
		return regs->lr;
	if (regs->pc % 4 != 0 || !code_read(regs->pc, (unsigned char *)at, sizeof(at)))
		return 0;
	/* bti or paciasp, then the store */
	if (at[0] == 0xd503245f || at[0] == 0xd503233f)
		at[0] = at[1];
	/* stp x29, x30, [sp, #-n]! or ret: the caller is still, or again, in x30 */
	if ((at[0] & 0xffc07fff) == 0xa9807bfd || at[0] == 0xd65f03c0)
		return regs->lr;
	return 0;
}
#endif

/* From one frame to the next; false ends the walk. */
static bool
frame_next(struct unwind_reader *r, uintptr_t *fp, uintptr_t low, uintptr_t *ret_pc)
{
	uintptr_t next, pc;

	if (*fp < low || *fp - low > UNWIND_FRAME_BYTES_MAX)
		return false;
	if (!unwind_load(r, *fp, &next) || !unwind_load(r, *fp + sizeof(uintptr_t), &pc))
		return false;
	pc = unwind_pointer_strip(pc);
	if (!unwind_code_plausible(pc))
		return false;
	*ret_pc = pc;
	*fp = next;
	return true;
}

static __attribute__((noinline)) unsigned
walk(struct unwind_reader *r, const struct unwind_regs *regs, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	uintptr_t fp = regs->fp, low = regs->sp, pc = unwind_pointer_strip(regs->pc), frame;
	unsigned  n = 0;

	*ret_truncated = 0;
	if (max == 0 || !unwind_code_plausible(pc)) {
		*ret_truncated = 1;
		return 0;
	}
	pcs[n++] = regs->exact ? pc : pc - 1;
	if (regs->fp_unknown) {
		*ret_truncated = 1;
		return n;
	}
	if (regs->exact && !r->copy && n < max) {
		pc = unwind_pointer_strip(leaf_return_address(r, regs));
		if (unwind_code_plausible(pc))
			pcs[n++] = pc - 1;
	}
	while (n < max) {
		frame = fp;
		if (!frame_next(r, &fp, low, &pc)) {
			*ret_truncated = n < 2;
			return n;
		}
		pcs[n++] = pc - 1;
		if (fp == 0)
			return n;
		low = frame + 2 * sizeof(uintptr_t);
	}
	/* Full: is there one more? */
	*ret_truncated = frame_next(r, &fp, low, &pc);
	return n;
}

#else

static __attribute__((noinline)) unsigned
walk(struct unwind_reader *r, const struct unwind_regs *regs, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	(void)r;
	*ret_truncated = 1;
	if (max == 0 || !unwind_code_plausible(regs->pc))
		return 0;
	pcs[0] = regs->exact ? regs->pc : regs->pc - 1;
	return 1;
}

#endif

void
unwind_regs_from_ucontext(struct unwind_regs *r, const void *ucontext)
{
	const ucontext_t *uc = ucontext;

	memset(r, 0, sizeof(*r));
	r->exact = 1;
	r->ucontext = ucontext;
#if defined(__x86_64__)
	r->pc = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
	r->sp = (uintptr_t)uc->uc_mcontext.gregs[REG_RSP];
	r->fp = (uintptr_t)uc->uc_mcontext.gregs[REG_RBP];
#elif defined(__aarch64__)
	r->pc = uc->uc_mcontext.pc;
	r->sp = uc->uc_mcontext.sp;
	r->fp = uc->uc_mcontext.regs[29];
	r->lr = uc->uc_mcontext.regs[30];
#else
	(void)uc;
#endif
}

/* By tables where they are chosen and know the leaf, else by frame pointers. */
static inline __attribute__((always_inline)) unsigned /* a handler has little stack */
walk_chosen(struct unwind_reader *r, const struct unwind_regs *regs, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	if (atomic_load_explicit(&by_tables, memory_order_relaxed)) {
		int n = unwind_tables_walk(r, regs, pcs, max, ret_truncated);

		if (n > 0)
			return (unsigned)n;
	}
	return walk(r, regs, pcs, max, ret_truncated);
}

unsigned
unwind_capture(const struct unwind_regs *r, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	struct unwind_reader reader;

	unwind_window_open(&reader, r->sp);
	return walk_chosen(&reader, r, pcs, max, ret_truncated);
}

unsigned
unwind_capture_cold(const struct unwind_regs *r, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	struct unwind_reader reader;

	unwind_window_open(&reader, r->sp);
	unwind_window_touch(&reader);
	return walk_chosen(&reader, r, pcs, max, ret_truncated);
}

unsigned
unwind_copy(const struct unwind_regs *r, const void *stack, size_t size, uintptr_t base, uintptr_t *pcs, unsigned max,
	    int *ret_truncated)
{
	struct unwind_reader reader;

	unwind_window_copy(&reader, stack, base, size);
	return walk_chosen(&reader, r, pcs, max, ret_truncated);
}

void
unwind_use_tables(bool on)
{
	atomic_store(&by_tables, on);
}

const char *
unwind_name(void)
{
	if (unwind_remote_used())
		return "libunwind";
	if (atomic_load(&by_tables))
		return "tables";
	return UNWIND_HAVE_FRAMES ? "frame-pointer" : "none";
}
