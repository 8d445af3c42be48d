/*
 * unwind_window.h - how a walk reads memory that may not be there.
 *
 * A reader has one window that needs no question: a copy of a stack, or pages of the
 * stack itself that the kernel was asked about (unwind_window.c).  Shared by the walks;
 * inline, because a walk does little else.
 */
#ifndef UNWIND_WINDOW_H
#define UNWIND_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch.h"

/* Smallest page of any architecture: right for larger ones too. */
#define UNWIND_PAGE_BYTES      4096
/* A frame larger than this ends the walk: big local arrays fit, a jump from one
 * mapping into another seldom does. */
#define UNWIND_FRAME_BYTES_MAX ((uintptr_t)1 << 20)
/* No code lies in the first page, nor above what user space can have. */
#define UNWIND_CODE_MIN        ((uintptr_t)4096)
#define UNWIND_CODE_MAX        ((uintptr_t)1 << 56)
/* Frames of a stack that may be guesses; those beyond end it. */
#define UNWIND_GUESS_MAX       128U

#define UNWIND_NO_SANITIZE __attribute__((no_sanitize("address", "undefined", "thread")))

/* What may be guessed of a frame: that it is a caller; and where the tables do not tell, that it
 * is the return from a handler, or that it is not. */
enum unwind_guesses { UNWIND_CALLER, UNWIND_BACK, UNWIND_PLAIN };
#define UNWIND_GUESSES (ARCH_SIGRETURN_BY_CODE ? 3 : 1)

/* Where a walk may load from. */
struct unwind_reader {
	uintptr_t floor; /* of the window; a multiple of eight */
	uintptr_t words; /* of eight bytes in it; 0: none yet */
	uintptr_t shift; /* from an address to where it can be read: 0 but for a copy */
	uintptr_t low;   /* sp where this stack was entered */
	uintptr_t root;  /* sp of the root frame, once reached */
	uint64_t  guessed[UNWIND_GUESSES][UNWIND_GUESS_MAX / 64]; /* by frame; only if unsure is set */
	unsigned  unsure; /* how often a verdict lacked (verdict.h) */
	bool      copy;   /* nothing outside the window exists */
	bool      interrupted; /* copy was taken anywhere, and not in a system call: the leaf may have no frame */
	bool      here;   /* at what the calling thread runs, so that its code is there */
	bool      entered; /* that the last frame is where a stack begins is a guess; only if unsure is set */
	bool      chain;  /* the walk ends where frame pointers end; only if unsure is set */
};

/* A verdict lacks. */
static inline void
unwind_unsure(struct unwind_reader *r)
{
	if (r->unsure++ > 0)
		return;
	for (unsigned i = 0; i < UNWIND_GUESSES * (UNWIND_GUESS_MAX / 64); i++)
		r->guessed[i / (UNWIND_GUESS_MAX / 64)][i % (UNWIND_GUESS_MAX / 64)] = 0;
	r->entered = r->chain = false;
}

/* Marks frame n as a guess: it is what is said of it only if its code turns out so, which for a
 * caller is that a call returns there.  False: too many are marked. */
static inline bool
unwind_guess(struct unwind_reader *r, unsigned n, enum unwind_guesses what)
{
	unwind_unsure(r);
	if (n >= UNWIND_GUESS_MAX)
		return false;
	r->guessed[what][n / 64] |= (uint64_t)1 << n % 64;
	return true;
}

static inline bool
unwind_is_guess(const struct unwind_reader *r, unsigned n, enum unwind_guesses what)
{
	return r->unsure > 0 && n < UNWIND_GUESS_MAX && (r->guessed[what][n / 64] >> n % 64 & 1);
}

/* For the calling thread's memory, from sp up. */
void unwind_window_open(struct unwind_reader *r, uintptr_t sp);
/* Bytes from sp to the end of the calling thread's own stack.  0: sp is on another one, or no walk has
 * learned yet where the end is. */
size_t unwind_window_own(uintptr_t sp);
/* For a copy of [base, base + size). */
void unwind_window_copy(struct unwind_reader *r, const void *copy, uintptr_t base, size_t size);
/* Is the signal frame with that ucontext_t on the thread's alternate stack? */
bool unwind_window_alternate(struct unwind_reader *r, uintptr_t ucontext);
/* The walk has passed a signal frame, which says that sp was interrupted.  It may be one that was
 * left over, so sp is believed only if the handler had an alternate stack, or if it is the
 * thread's own stack for sure; else it is on the same stack or cannot be read. */
void unwind_window_interrupted(struct unwind_reader *r, uintptr_t sp, bool alternate);
/* The walk has reached the root of its thread, whose frame is at sp and whose pc is
 * pc: the stack between may be remembered for the thread's life. */
void unwind_window_learn(struct unwind_reader *r, uintptr_t pc, uintptr_t sp);
/* The calling thread's root has this pc and sp: others' will be alike.  Not from a handler. */
void unwind_window_roots(uintptr_t pc, uintptr_t sp);
/* Is the address a word outside the window that can be read now?  May widen it. */
bool unwind_window_prove(struct unwind_reader *r, uintptr_t address);
/* Into the processor's caches with the stack that the walk is about to read. */
void unwind_window_touch(struct unwind_reader *r);
/* How much of the calling thread's stack can be read from sp up, max at most. */
size_t unwind_window_extent(uintptr_t sp, size_t max);
/* Can the byte be read?  No window is asked. */
bool unwind_probe(uintptr_t address);

struct unwind_word {
	volatile uintptr_t value;
} __attribute__((packed, may_alias)); /* copies lie anywhere */

/* One compare for three things: below the window, above it, not aligned. */
static inline bool
unwind_window_has(uintptr_t floor, uintptr_t words, uintptr_t address)
{
	uintptr_t at = address - floor;

	return __builtin_expect((at >> 3 | at << (sizeof(at) * 8 - 3)) < words, 1);
}

static inline uintptr_t UNWIND_NO_SANITIZE
unwind_word(uintptr_t address)
{
	return ((const struct unwind_word *)address)->value;
}

static inline bool UNWIND_NO_SANITIZE
unwind_load(struct unwind_reader *r, uintptr_t address, uintptr_t *ret)
{
	if (!unwind_window_has(r->floor, r->words, address) && !unwind_window_prove(r, address))
		return false;
	*ret = unwind_word(address + r->shift);
	return true;
}

/* Of a stack that is there.  Not memcpy(), which may be bound only now, and no sanitizer's business:
 * parts of a stack are nobody's. */
static inline void UNWIND_NO_SANITIZE
unwind_words_copy(uintptr_t *to, uintptr_t from, size_t words)
{
	for (size_t i = 0; i < words; i++) {
		to[i] = ((const volatile uintptr_t *)from)[i];
		__asm__ volatile("" ::: "memory");
	}
}

static inline bool
unwind_code_plausible(uintptr_t pc)
{
	return pc - UNWIND_CODE_MIN < UNWIND_CODE_MAX - UNWIND_CODE_MIN;
}

#endif
