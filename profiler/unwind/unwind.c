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
#include "own_thread.h"
#include "tables_lookup.h"
#include "first_tables.h"
#include "guess.h"
#include "unwind_window.h"
#include "by_libunwind.h"
#include "by_tables.h"
#include "undescribed.h"
#include "verdict.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

static void
frame_of(struct unwind_frame *f, const struct unwind_regs *regs)
{
	f->known = 0;
	unwind_frame_set(f, CFI_REG_SP, regs->sp);
	unwind_frame_set(f, CFI_REG_FP, regs->fp);
	if (regs->lr)
		unwind_frame_set(f, CFI_REG_RA, regs->lr);
}

static __attribute__((noinline)) int
frames_walk(struct unwind_reader *r, const struct unwind_regs *regs, uintptr_t *pcs, unsigned max, int *ret_truncated)
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
		unwind_refresh_want(pcs[0]);
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

/* ---- the rows ---- */

static int
frames_open(void)
{
	return ARCH_HAVE_FRAMES ? 0 : -ENOSYS;
}

static int
tables_open(void)
{
	return ARCH_HAVE_TABLES ? 0 : -ENOSYS;
}

static const struct unwinder rows[UNWIND_MODES] = {
	[UNWIND_AUTO] = { .name = "auto" },
	[UNWIND_FRAME_POINTER] = { .name = "frame-pointer", .open = frames_open, .capture = frames_walk },
	[UNWIND_TABLES] = { .name = "tables", .open = tables_open, .tables = true, .capture = unwind_tables_walk },
	[UNWIND_LIBUNWIND] = { .name = "libunwind", .open = unwind_remote_open, .tables = true, /* for their sections */
		.way_out = "install the Debian package libunwind8, or write --profiling-unwinder=auto",
		.capture = ARCH_HAVE_TABLES ? unwind_tables_walk : frames_walk, .taken = unwind_remote_walk, .forked = unwind_remote_forked },
};

static _Atomic(const struct unwinder *) chosen = &rows[UNWIND_FRAME_POINTER];
static _Atomic(const struct unwinder *) taker; /* the last one chosen that walks copies */

const struct unwinder *
unwinder_of(enum unwind_mode mode)
{
	return &rows[(unsigned)mode < UNWIND_MODES ? mode : UNWIND_AUTO];
}

const struct unwinder *
unwinder_open(enum unwind_mode mode, int *ret_err)
{
	static const enum unwind_mode best[] = { UNWIND_TABLES, UNWIND_FRAME_POINTER, UNWIND_LIBUNWIND };
	const struct unwinder        *u = unwinder_of(mode);

	*ret_err = u->open ? u->open() : 0;
	if (u->open && (!*ret_err || u->way_out))
		return u;
	*ret_err = 0;
	for (size_t i = 0; i < sizeof(best) / sizeof(*best); i++)
		if (rows[best[i]].open() == 0)
			return &rows[best[i]];
	return &rows[UNWIND_FRAME_POINTER]; /* leaves alone */
}

void
unwinder_choose(const struct unwinder *u)
{
	if (u->taken)
		atomic_store(&taker, u);
	atomic_store(&chosen, u);
}

void
unwinders_forked(void)
{
	for (size_t i = 0; i < UNWIND_MODES; i++)
		if (rows[i].forked)
			rows[i].forked();
}

const char *
unwind_name(void)
{
	const struct unwinder *u = atomic_load(&chosen);

	return u == &rows[UNWIND_FRAME_POINTER] && !ARCH_HAVE_FRAMES ? "none" : u->name;
}

/* ---- the doors ---- */

void
unwind_regs_from_ucontext(struct unwind_regs *r, const void *ucontext)
{
	const ucontext_t *uc = ucontext;

	memset(r, 0, sizeof(*r));
	r->exact = 1;
	r->ucontext = ucontext;
	r->pc = ARCH_PC(uc);
	r->sp = ARCH_SP(uc);
	r->fp = arch_register(uc, CFI_REG_FP);
	r->lr = ARCH_LINK(uc);
}

/* As is chosen, if that knows the leaf, else by frame pointers. */
static inline __attribute__((always_inline)) unsigned /* a handler has little stack */
walk_chosen(struct unwind_reader *r, const struct unwind_regs *regs, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	const struct unwinder *u = atomic_load_explicit(&chosen, memory_order_relaxed);
	int                    n;

	/* A handler cannot wait; it alone has a context. */
	if (__builtin_expect(unwind_first_is_owed(), 0) && u->tables && !regs->ucontext)
		unwind_first_wait();
	n = u->capture(r, regs, pcs, max, ret_truncated);
	return (unsigned)(n > 0 ? n : frames_walk(r, regs, pcs, max, ret_truncated));
}

static inline __attribute__((always_inline)) void
reader_open(struct unwind_reader *reader, const struct unwind_regs *r)
{
	unwind_window_open(reader, r->sp);
	reader->here = r->exact;
}

/* A hook's walk was unsure: it asks, waits for a thread of ours, and walks once more.  A handler
 * cannot wait. */
static __attribute__((noinline)) unsigned
walk_surely(struct unwind_reader *reader, const struct unwind_regs *r, uintptr_t *pcs, unsigned n, unsigned max,
	    int *ret_truncated)
{
	int64_t  until = 0;
	unsigned settled;

	if (own_thread_is()) {
		unwind_guesses_mark(reader, pcs, n);
		return unwind_prove(pcs, n, ret_truncated);
	}
	while (reader->unsure && !r->ucontext) {
		settled = unwind_verdicts_settled();
		reader_open(reader, r);
		n = walk_chosen(reader, r, pcs, max, ret_truncated);
		if (reader->unsure && !unwind_verdicts_await(settled, &until))
			break;
	}
	return reader->unsure ? unwind_guesses_cut(reader, pcs, n, ret_truncated) : n;
}

unsigned
unwind_capture(const struct unwind_regs *r, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	struct unwind_reader reader;
	unsigned             n;

	reader_open(&reader, r);
	n = walk_chosen(&reader, r, pcs, max, ret_truncated);
	return __builtin_expect(reader.unsure, 0) ? walk_surely(&reader, r, pcs, n, max, ret_truncated) : n;
}

unsigned
unwind_capture_guess(const struct unwind_regs *r, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	struct unwind_reader reader;
	unsigned             n;

	reader_open(&reader, r);
	n = walk_chosen(&reader, r, pcs, max, ret_truncated);
	if (__builtin_expect(reader.unsure, 0))
		unwind_guesses_mark(&reader, pcs, n);
	return n;
}

unsigned
unwind_capture_cold(const struct unwind_regs *r, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	struct unwind_reader reader;
	unsigned             n;

	reader_open(&reader, r);
	unwind_window_touch(&reader);
	n = walk_chosen(&reader, r, pcs, max, ret_truncated);
	if (__builtin_expect(reader.unsure, 0))
		unwind_guesses_mark(&reader, pcs, n);
	return n;
}

unsigned
unwind_copy(const struct unwind_regs *r, const void *stack, size_t size, uintptr_t base, uintptr_t *pcs, unsigned max,
	    int *ret_truncated)
{
	struct unwind_reader reader;
	unsigned             n;

	unwind_window_copy(&reader, stack, base, size);
	n = walk_chosen(&reader, r, pcs, max, ret_truncated);
	if (!reader.unsure)
		return n;
	unwind_guesses_mark(&reader, pcs, n);
	return unwind_prove(pcs, n, ret_truncated);
}

bool
unwind_takes(void)
{
	return atomic_load_explicit(&chosen, memory_order_relaxed)->taken != NULL;
}

size_t
unwind_take(const void *ucontext, uintptr_t words[UNWIND_WORDS])
{
	const volatile uintptr_t *rest = ucontext;
	struct unwind_regs        regs;
	struct unwind_frame       f = { .known = 0 };

	unwind_regs_from_ucontext(&regs, ucontext);
	unwind_frame_registers(&f, ucontext);
	unwind_frame_set(&f, CFI_REG_SP, regs.sp);
	for (unsigned i = 0; i < CFI_REGS; i++) {
		words[i] = f.regs[i];
		__asm__ volatile("" ::: "memory"); /* not a memcpy(), which may be bound only now */
	}
	words[UNWIND_WORD_PC] = regs.pc;
	for (size_t i = UNWIND_WORD_PC + 1; i < UNWIND_WORDS; i++)
		words[i] = *rest++;
	return unwind_window_extent(regs.sp, UNWIND_COPY_BYTES);
}

unsigned
unwind_taken(const struct unwind_taken *t, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	const struct unwinder *u = atomic_load(&taker);
	unsigned               n = u ? u->taken(t, pcs, max, ret_truncated) : 0;

	if (n == 0 && max > 0) {
		*ret_truncated = 1;
		pcs[n++] = t->words ? t->words[UNWIND_WORD_PC] : t->pc;
	}
	return n;
}
