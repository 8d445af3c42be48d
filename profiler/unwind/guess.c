/*
 * guess.c - callers that a walk has guessed, until they are proven.
 *
 *     handler: walk --> guess? --> mark --> ring, slot --> thread of ours: prove, or cut there
 *     hook:    walk --> guess? --> wait for a thread of ours, walk again, or cut there
 *
 * By a frame pointer a walk finds a word that is a caller if a call returns there.  Where nobody
 * has looked at the code yet (verdict.c) the walk goes on as if one did: what a walk
 * may load is the same wherever a wrong guess leads (unwind_window.c).  Nobody is shown what was
 * not proven.
 *
 * What a stranger would get wrong: a mark is one of the bits that no address of code has, so a
 * stack with marks must not get past the first thread of ours.
 *
 * Tests: tests/unwind/test_verdict.c.
 */
#include <config.h>

#include "guess.h"

#include "unwind.h"
#include "verdict.h"

#define GUESS   ((uintptr_t)1 << 63) /* a caller, if a call returns to the address behind it */
#define ENTERED ((uintptr_t)1 << 62) /* where the stack begins, if none returns there */
#define CHAIN   ((uintptr_t)1 << 61) /* of a walk that ends where frame pointers end */
#define BACK    ((uintptr_t)1 << 60) /* the return from a handler, if its code is there */
#define PLAIN   ((uintptr_t)1 << 59) /* none, if it is not; both with ARCH_SIGRETURN_BY_CODE */
#define MARKS   (GUESS | ENTERED | CHAIN | BACK | PLAIN)

static uintptr_t
marks_of(const struct unwind_reader *r, unsigned i, unsigned n)
{
	uintptr_t marks = unwind_is_guess(r, i, UNWIND_CALLER) ? GUESS : 0;

	if (i + 1 == n && r->entered)
		marks |= ENTERED;
	if (ARCH_SIGRETURN_BY_CODE && unwind_is_guess(r, i, UNWIND_BACK))
		marks |= BACK;
	if (ARCH_SIGRETURN_BY_CODE && unwind_is_guess(r, i, UNWIND_PLAIN))
		marks |= PLAIN;
	return marks && r->chain ? marks | CHAIN : marks;
}

void
unwind_guesses_mark(const struct unwind_reader *r, uintptr_t *pcs, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		pcs[i] |= marks_of(r, i, n);
}

/*
 * How much of a stack stays, where a frame i with these marks has that verdict: i, i + 1, or
 * more than that for all.
 */
static unsigned
stays(uintptr_t *pc, uintptr_t marks, unsigned verdict, unsigned i, int *ret_truncated)
{
	if (marks & GUESS && !(verdict & UNWIND_VERDICT_RETURN)) {
		/* As a walk by frame pointers says it, the second frame is enough. */
		*ret_truncated = i < 2 || !(marks & CHAIN);
		return i;
	}
	if (marks & ENTERED ? !(verdict & UNWIND_VERDICT_RETURN) :
	    marks & BACK    ? verdict & UNWIND_VERDICT_SIGRETURN :
	    marks & PLAIN   ? !(verdict & UNWIND_VERDICT_SIGRETURN) : true)
		return i + 2;
	/* The address behind the call, or the exact one: it was taken for the other. */
	*pc += marks & (ENTERED | BACK) ? (uintptr_t)-1 : 1;
	*ret_truncated = 1;
	return i + 1;
}

unsigned
unwind_guesses_cut(const struct unwind_reader *r, uintptr_t *pcs, unsigned n, int *ret_truncated)
{
	for (unsigned i = 0; i < n; i++) {
		uintptr_t marks = marks_of(r, i, n);

		if (marks & GUESS) {
			*ret_truncated = i < 2 || !r->chain;
			return i;
		}
		if (marks) {
			pcs[i] -= marks & (ENTERED | BACK) ? 1 : 0;
			*ret_truncated = 1;
			return i + 1;
		}
	}
	return n;
}

unsigned
unwind_prove(uintptr_t *pcs, unsigned n, int *ret_truncated)
{
	for (unsigned i = 0; i < n; i++) {
		uintptr_t marks = pcs[i] & MARKS;
		unsigned  left;

		if (!marks)
			continue;
		pcs[i] &= ~MARKS;
		left = stays(&pcs[i], marks, unwind_verdict_now(pcs[i] + (marks & (ENTERED | BACK) ? 0 : 1)), i, ret_truncated);
		if (left <= i + 1)
			return left;
	}
	return n;
}
