/*
 * verdict.h - what code is at an address, without a look at it.
 *
 * The first group is signal-safe, for walks.
 */
#ifndef UNWIND_VERDICT_H
#define UNWIND_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind_window.h"

#define UNWIND_VERDICT_CALL      0x01U /* behind a call */
#define UNWIND_VERDICT_SIGRETURN 0x02U /* the return from a handler begins there */
#define UNWIND_VERDICT_LEAF      0x04U /* without a frame: the return address is at sp, or in x30 ... */
#define UNWIND_VERDICT_LEAF_NEXT 0x08U /* ... or in the word above */
#define UNWIND_VERDICT_STUB      0x10U /* in a stub that an object calls others through ... */
#define UNWIND_VERDICT_PUSHED    0x20U /* ... which has pushed two registers */
#define UNWIND_VERDICT_KNOWN     0x40U /* without it: not yet */
#define UNWIND_VERDICT_RETURN    (UNWIND_VERDICT_CALL | UNWIND_VERDICT_SIGRETURN)

/* The bits above; 0: a thread of ours will find out. */
unsigned unwind_verdict(uintptr_t pc);
/* The same where the walk begins: with r->here the calling thread runs it, so its page is there. */
unsigned unwind_verdict_at(const struct unwind_reader *r, uintptr_t pc);
/* Is there an address that nobody has judged yet? */
bool     unwind_verdicts_wanted(void);

/* ---- not from a handler ---- */

/* Finds out at once.  0: no memory can be read. */
unsigned unwind_verdict_now(uintptr_t pc);
enum unwind_verdicts {
	UNWIND_VERDICTS_WANTED, /* by walks */
	UNWIND_VERDICTS_SOME,   /* and a part of all others; of that goes what nobody has asked for in a while */
	UNWIND_VERDICTS_ALL,    /* and all others */
};
/* Judges these anew. */
void     unwind_verdicts_settle(enum unwind_verdicts which);
/* How often what was wanted has been judged. */
unsigned unwind_verdicts_settled(void);
/* In a hook: waits a little for what its walk has wanted to be judged, unless it was since
 * `settled` was asked; 10 ms at most for all calls with one *until_ns, 0 at first.  False: there
 * is no use in waiting.  errno stays. */
bool     unwind_verdicts_await(unsigned settled, int64_t *until_ns);
/* Around a fork nobody waits.  In a child that begins to do so with unwind_verdicts_forked(). */
void     unwind_verdicts_fork(bool begins);
/* In a forked child, once it is known that our thread is not there. */
void     unwind_verdicts_forked(void);

#endif
