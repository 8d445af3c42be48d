/*
 * unwind.c - the doors to a call stack, and who walks behind them.
 *
 * Ways to walk are rows of unwinders.def, each in a file of its own (by_*.c).  Nobody else asks
 * which one it is.  One is chosen (unwind_start() in refresh.c); where it does not know the leaf
 * the stack is walked by frame pointers, and where these lead nowhere it is the leaf alone.
 *
 *     hook     walk ── unsure? ── wait for a thread of ours, walk again, or cut (guess.c)
 *     hook, at once: walk ── unsure? ── wake that thread, cut, and say so
 *     handler  walk ── unsure? ── mark; a thread of ours proves it
 *     handler  copy ── a thread of ours walks the copy (unwind_take(), unwind_taken())
 *
 * What a stranger would get wrong: a row that is not there, as its folder's processor or its
 * file is not, is no error.  Another one takes its place.
 *
 * Tests: tests/unwind/test_unwind.c, tests/unwind/test_verdict.c.
 */
#include <config.h>

#include "unwind.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "frame.h"
#include "guess.h"
#include "our_thread.h"
#include "unwind_window.h"
#include "verdict.h"
#include "wake.h"

/* ---- the rows ---- */

#define UNWINDER(mode, row) extern const struct unwinder row;
#include "unwinders.def"
#undef UNWINDER

static const struct unwinder *const rows[UNWIND_MODES] = {
#define UNWINDER(mode, row) [mode] = &row,
#include "unwinders.def"
#undef UNWINDER
};

/* By frame pointers, whoever is chosen; else the leaf alone. */
static __attribute__((noinline)) int
walk_anyhow(struct unwind_reader *r, const struct unwind_regs *regs, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	uintptr_t pc = arch_pointer_strip(regs->pc);

	if (rows[UNWIND_FRAME_POINTER])
		return rows[UNWIND_FRAME_POINTER]->capture(r, regs, pcs, max, ret_truncated);
	*ret_truncated = 1;
	if (max == 0 || !unwind_code_plausible(pc))
		return 0;
	pcs[0] = regs->exact ? pc : pc - 1;
	return 1;
}

static const struct unwinder anyhow = { .capture = walk_anyhow };

static _Atomic(const struct unwinder *) chosen = &anyhow;
static _Atomic(const struct unwinder *) walker = &anyhow; /* the one chosen, or who walks in its place */
static _Atomic(const struct unwinder *) taker; /* the last one chosen that walks copies */

static bool
can_be_had(const struct unwinder *u)
{
	return u && u->open() == 0;
}

const struct unwinder *
unwinder_of(enum unwind_mode mode)
{
	static const struct unwinder none = { .name = "auto" };

	return (unsigned)mode < UNWIND_MODES && rows[mode] ? rows[mode] : &none;
}

const struct unwinder *
unwinder_open(enum unwind_mode mode, int *ret_err)
{
	static const enum unwind_mode best[] = {
#define UNWINDER(mode, row) mode,
#include "unwinders.def"
#undef UNWINDER
	};
	const struct unwinder *u = unwinder_of(mode);

	*ret_err = u->open ? u->open() : 0;
	if (u->open && (!*ret_err || u->package))
		return u;
	*ret_err = 0;
	for (size_t i = 0; i < sizeof(best) / sizeof(*best); i++)
		if (can_be_had(rows[best[i]]))
			return rows[best[i]];
	return &anyhow;
}

void
unwinder_choose(const struct unwinder *u)
{
	if (!u)
		u = &anyhow;
	if (u->taken)
		atomic_store(&taker, u);
	atomic_store(&walker, u->capture ? u : can_be_had(rows[UNWIND_TABLES]) ? rows[UNWIND_TABLES] : &anyhow);
	atomic_store(&chosen, u);
}

void
unwinders_fork_prepare(void)
{
	for (size_t i = 0; i < UNWIND_MODES; i++)
		if (rows[i] && rows[i]->fork_prepare)
			rows[i]->fork_prepare();
}

void
unwinders_fork_parent(void)
{
	for (size_t i = 0; i < UNWIND_MODES; i++)
		if (rows[i] && rows[i]->fork_parent)
			rows[i]->fork_parent();
}

void
unwinders_forked(void)
{
	for (size_t i = 0; i < UNWIND_MODES; i++)
		if (rows[i] && rows[i]->forked)
			rows[i]->forked();
}

const char *
unwind_name(void)
{
	const struct unwinder *u = atomic_load(&chosen);

	if (u != &anyhow)
		return u->name;
	return can_be_had(rows[UNWIND_FRAME_POINTER]) ? rows[UNWIND_FRAME_POINTER]->name : "none";
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
	const struct unwinder *u = atomic_load_explicit(&walker, memory_order_relaxed);
	int                    n;

	/* A handler cannot wait; it alone has a context. */
	if (__builtin_expect(unwind_first_is_owed(), 0) && u->tables && !regs->ucontext && !regs->at_once)
		unwind_first_wait();
	n = u->capture(r, regs, pcs, max, ret_truncated);
	return (unsigned)(n > 0 ? n : walk_anyhow(r, regs, pcs, max, ret_truncated));
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

	if (our_thread_is()) {
		unwind_guesses_mark(reader, pcs, n);
		return unwind_prove(pcs, n, ret_truncated);
	}
	while (reader->unsure && !r->ucontext && !r->at_once) {
		settled = unwind_verdicts_settled();
		reader_open(reader, r);
		n = walk_chosen(reader, r, pcs, max, ret_truncated);
		if (reader->unsure && !unwind_verdicts_await(settled, &until))
			break;
	}
	return reader->unsure ? unwind_guesses_cut(reader, pcs, n, ret_truncated) : n;
}

/* What would have been waited for is begun, and there for the next one. */
static __attribute__((noinline)) void
not_now(bool owed, int *ret_truncated)
{
	if (our_thread_is())
		return; /* which has found out itself */
	if (owed)
		unwind_wake_to_look();
	else
		unwind_wake_to_judge();
	*ret_truncated = UNWIND_NOT_NOW;
}

unsigned
unwind_capture(const struct unwind_regs *r, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	struct unwind_reader reader;
	unsigned             n;
	bool                 owed = r->at_once && unwind_first_is_owed();

	reader_open(&reader, r);
	n = walk_chosen(&reader, r, pcs, max, ret_truncated);
	if (__builtin_expect(reader.unsure, 0))
		n = walk_surely(&reader, r, pcs, n, max, ret_truncated);
	if (__builtin_expect(owed || reader.unsure, 0) && r->at_once)
		not_now(owed, ret_truncated);
	return n;
}

static inline __attribute__((always_inline)) unsigned
capture_guessing(const struct unwind_regs *r, bool cold, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	struct unwind_reader reader;
	unsigned             n;

	reader_open(&reader, r);
	if (cold)
		unwind_window_touch(&reader);
	n = walk_chosen(&reader, r, pcs, max, ret_truncated);
	if (__builtin_expect(reader.unsure, 0))
		unwind_guesses_mark(&reader, pcs, n);
	return n;
}

unsigned
unwind_capture_guess(const struct unwind_regs *r, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	return capture_guessing(r, false, pcs, max, ret_truncated);
}

unsigned
unwind_capture_cold(const struct unwind_regs *r, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	return capture_guessing(r, true, pcs, max, ret_truncated);
}

unsigned
unwind_copy(const struct unwind_regs *r, const void *stack, size_t size, uintptr_t base, uintptr_t *pcs, unsigned max,
	    int *ret_truncated)
{
	struct unwind_reader reader;
	unsigned             n;

	unwind_window_copy(&reader, stack, base, size);
	reader.interrupted = r->ucontext != NULL;
	n = walk_chosen(&reader, r, pcs, max, ret_truncated);
	if (!reader.unsure)
		return n;
	unwind_guesses_mark(&reader, pcs, n);
	return unwind_prove(pcs, n, ret_truncated);
}

size_t
unwind_take_stack(uintptr_t sp, uintptr_t *to, size_t max)
{
	size_t bytes = unwind_window_extent(sp, max);

	unwind_words_copy(to, sp, bytes / sizeof(*to));
	return bytes;
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
	uintptr_t              pc = t->words ? t->words[UNWIND_WORD_PC] : t->pc;

	if (n > 0 || max == 0)
		return n;
	*ret_truncated = 1;
	pcs[0] = pc;
	return pc != 0;
}
