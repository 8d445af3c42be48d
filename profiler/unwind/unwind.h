/*
 * unwind.h - the doors to a call stack, and the rows of how it is walked.
 *
 * unwind_capture() is for the calling thread, from a hook, unwind_capture_guess() from a
 * signal handler: no lock, no allocation, no loader call, no load but of its stack, of what
 * follows on that without a gap where its end is unknown (unwind_window.c), and of the code that a
 * handler has interrupted.  In a hook it may wait for a thread of ours, seldom and not for long,
 * unless its registers say at_once.
 * unwind_copy() is for another thread's registers and a copy of its stack.
 *
 * Where the row of the unwinder says so, a handler does not walk: unwind_take() copies the
 * registers, the caller the stack, and a thread of ours walks both later by unwind_taken().
 */
#ifndef UNWIND_UNWIND_H
#define UNWIND_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include "arch.h"

struct unwind_regs {
	uintptr_t pc; /* exact if exact is set, else a return address */
	uintptr_t sp;
	uintptr_t fp;
	int       exact;
	uintptr_t lr; /* aarch64; 0 where unknown */
	const void *ucontext; /* where the other registers are; NULL where unknown */
	int       fp_unknown; /* only for unwind_copy(): fp is to be found on the stack */
	struct unwind_code *code; /* with fp_unknown: recover.h */
	bool      at_once; /* only for unwind_capture(): it waits for nobody, and may say UNWIND_NOT_NOW */
};

void     unwind_regs_from_ucontext(struct unwind_regs *r, const void *ucontext);
/* The registers of the function it is used in; only for unwind_capture() there. */
#define UNWIND_REGS_HERE                                                              \
	{ (uintptr_t)__builtin_return_address(0), (uintptr_t)__builtin_dwarf_cfa(),     \
	  ARCH_CALLER_FP, 0, 0, 0, 0, 0, false }
/* Leaf first, callers as return address - 1.  *ret_truncated is set when frames
 * are known to be missing: max was reached, or not even the leaf's caller could be
 * found.  (Without tables the true root cannot be told from a broken chain.) */
unsigned unwind_capture(const struct unwind_regs *r, uintptr_t *pcs, unsigned max, int *ret_truncated);
/* In place of 1: frames are missing that could have been waited for.  unwind_copy() of what
 * unwind_take_stack() has copied finds them, after unwind_ready(). */
#define UNWIND_NOT_NOW 2
/* The same from a handler, which cannot wait until new code without tables has been looked
 * at: callers there are guessed.  Then a thread of ours calls unwind_prove(), soon. */
unsigned unwind_capture_guess(const struct unwind_regs *r, uintptr_t *pcs, unsigned max, int *ret_truncated);
/* Of a thread that has slept: its stack has left the processor's caches, and a walk would
 * wait for it frame by frame.  Where it has not, some hundred instructions for nothing.
 * With guesses, too. */
unsigned unwind_capture_cold(const struct unwind_regs *r, uintptr_t *pcs, unsigned max, int *ret_truncated);
/* Ends the stack where a guess was wrong: the new n.  Nothing else may be done before with
 * what was captured so, and nothing is done where nothing was guessed.  Not from a handler. */
unsigned unwind_prove(uintptr_t *pcs, unsigned n, int *ret_truncated);
unsigned unwind_copy(const struct unwind_regs *r, const void *stack, size_t size, uintptr_t base,
	uintptr_t *pcs, unsigned max, int *ret_truncated);

/* Signal-safe: copies the calling thread's stack from sp up, max bytes at most; how many. */
size_t   unwind_take_stack(uintptr_t sp, uintptr_t *to, size_t max);

/* Can a stack be walked at once, beyond its leaf?  Else only a copy can, by unwind_taken(). */
#define UNWIND_AT_ONCE (ARCH_HAVE_TABLES || ARCH_HAVE_FRAMES)

/* Whose rows they are, in the order of enum component_unwinder. */
enum unwind_mode {
	UNWIND_AUTO, /* the first that can be had: tables, frame pointers, libunwind */
	UNWIND_FRAME_POINTER,
	UNWIND_TABLES,
	UNWIND_LIBUNWIND, /* CPU samples and blocked threads from copies; else by tables */
	UNWIND_MODES
};

/* What unwind_take() takes: registers by DWARF's numbers, then the exact pc, which is 0 where the
 * rest has it. */
#define UNWIND_WORD_SP CFI_REG_SP
#define UNWIND_WORD_PC CFI_REGS
#define UNWIND_WORDS   (CFI_REGS + 1 + ARCH_TAKEN_WORDS)
/* Of a stack, in a copy: callers above it are missing, and the stack counts as truncated. */
#define UNWIND_COPY_BYTES ((size_t)32 << 10)

struct unwind_taken {
	const uintptr_t *words; /* NULL: of a blocked thread, of which only these are known: */
	uintptr_t        pc, sp, fp; /* fp 0: nor that */
	const uintptr_t *stack; /* from sp up */
	size_t           size;  /* bytes */
};

struct unwind_reader;

/* One way to walk a stack. */
struct unwinder {
	const char *name;    /* as options and index pages have it */
	const char *package; /* Debian's, which it takes; NULL: where it cannot be had it is as UNWIND_AUTO */
	/* Loads what it takes.  0; -ENOENT: that is not installed; -ENOSYS: this build has no use for it. */
	int (*open)(void);
	bool tables; /* objects' tables are read and kept: refresh.c */
	/* Signal-safe; arguments as those of unwind_capture().  Below 1: by frame pointers instead;
	 * NULL: by tables, where they can be had. */
	int (*capture)(struct unwind_reader *r, const struct unwind_regs *regs, uintptr_t *pcs, unsigned max, int *ret_truncated);
	/* Of a copy, not in a handler; NULL: CPU samples are walked at once. */
	unsigned (*taken)(const struct unwind_taken *t, uintptr_t *pcs, unsigned max, int *ret_truncated);
	void (*fork_prepare)(void), (*fork_parent)(void); /* around a fork; or NULL */
	void (*forked)(void); /* in a child; or NULL */
};

/* The row of a mode, whether it can be had or not; of UNWIND_AUTO, and of one that this tree does
 * not have, a row with a name alone. */
const struct unwinder *unwinder_of(enum unwind_mode mode);
/* The row to walk by: the mode's own, or the first that can be had in its place.  *ret_err: 0, or why
 * the mode's own, which has a package, cannot be had. */
const struct unwinder *unwinder_open(enum unwind_mode mode, int *ret_err);
/* From now on stacks are walked so; NULL: by frame pointers, where they lead anywhere. */
void                   unwinder_choose(const struct unwinder *u);
/* Around a fork, and in a child. */
void                   unwinders_fork_prepare(void);
void                   unwinders_fork_parent(void);
void                   unwinders_forked(void);

/* Are CPU samples and stacks of blocked threads to be taken, for unwind_taken()?  Signal-safe. */
bool     unwind_takes(void);
/* Signal-safe: fills in words; how many bytes of the stack can be copied from sp up. */
size_t   unwind_take(const void *ucontext, uintptr_t words[UNWIND_WORDS]);
/* Leaf first, callers as return address - 1.  Not in a handler; callers wait for each other. */
unsigned unwind_taken(const struct unwind_taken *t, uintptr_t *pcs, unsigned max, int *ret_truncated);

/*
 * unwind_start - chooses how to walk; with tables, keeps them up to date
 *
 * Starts a small thread that reads the tables of all loaded objects, and anew when objects
 * have come or gone.  With AUTO the first ones wait for a need, or 50 ms.  Started again, it
 * changes the mode.
 *
 *   returns  0, also where another way is taken in place of one that cannot be had; or a negative
 *            errno and walks are by frame pointers: never with AUTO
 *   threads  any, not from a handler or a hook
 *   fork     a child goes on by the parent's tables; start again for its own thread
 */
int  unwind_start(enum unwind_mode mode);
/*
 * unwind_lend - tables for one dump, though nobody has started any
 *
 * Builds them if there are none.  Starts no thread and enters no malloc: it is for a
 * dump of a process that hangs.  Each call is followed by unwind_lend_end().
 *
 *   threads  one at a time
 */
void unwind_lend(void);
void unwind_lend_end(void);
/* The thread ends, and the tables stay as they are.  unwind_resume() starts it again if it ran; where that fails,
 * the tables stay in use and follow no object any more.  False: another thread starts or stops them, and nothing was done. */
bool unwind_pause(void);
void unwind_resume(void);
/* Frame pointers again; the thread ends and the tables are given back. */
void unwind_stop(void);
/* Makes the tables if the first ones have been put off.  Before handlers that capture. */
void unwind_ready(void);
/* Reads the tables anew now if objects have come or gone. */
void unwind_refresh(void);
/* CPU time is sampled from now on, or no more: more may be spent on following objects that
 * come and go.  Any thread. */
void unwind_busy(bool busy);
void unwind_forked(void);
/* What the thread has spent since the process began; for tests. */
struct unwind_spent {
	int64_t  cpu_ns, longest_ns; /* in one round */
	unsigned rounds, looks;      /* looks at all mappings */
};
void unwind_spent(struct unwind_spent *ret);
/* It may spend so much of the wall clock's time while nobody samples, and at once. */
#define UNWIND_SPEND_SHARE 1000
#define UNWIND_SPEND_NS    20000000L
/* Has it been seen where threads begin?  Soon after the start with tables; from then on
 * a thread's stack is asked about once and not in each walk. */
bool unwind_roots_known(void);
/* "frame-pointer", ...: for index pages and profile comments. */
const char *unwind_name(void);

#endif
