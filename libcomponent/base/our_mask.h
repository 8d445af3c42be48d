/*
 * our_mask.h - a thread of the program takes no signal while it is in our code.
 *
 * What a stranger would get wrong:
 * - sigfillset() and pthread_sigmask() leave out the signal by which glibc cancels threads.
 *   A thread with asynchronous cancellation would be unwound out of our code, and whatever
 *   it had taken would stay taken.  So the mask is set by the bare system call.
 * - glibc's other signal stays deliverable: setuid(2) waits until each thread has handled
 *   it, and its handler only returns.
 * - pthread_sigmask() may be a hook of ours by now (hooks/signal_masks.c): these masks are not the
 *   program's.
 *
 * Source: nptl/internal-signals.h of glibc: SIGCANCEL is 32, SIGSETXID 33.
 * Tests: tests/base/test_our_thread.c, tests/unwind/cancelled_threads.t.
 */
#ifndef BASE_OUR_MASK_H
#define BASE_OUR_MASK_H

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OUR_MASK_BYTES  8 /* of the kernel's sigset_t; glibc's has room for 1,024 signals */
#define OUR_MASK_SETXID 33
#define OUR_MASK_BIT(number) ((uint64_t)1 << ((number) - 1))

/* Async-signal-safe, errno untouched where it succeeds, which it does. */
static inline void
our_mask_change(int how, const uint64_t *set, sigset_t *ret_before)
{
	if (ret_before)
		sigemptyset(ret_before); /* the kernel writes the first bytes alone */
	syscall(SYS_rt_sigprocmask, how, set, ret_before, OUR_MASK_BYTES);
}

static inline void
our_mask_block(sigset_t *ret_before)
{
	uint64_t all = ~OUR_MASK_BIT(OUR_MASK_SETXID);

	our_mask_change(SIG_SETMASK, &all, ret_before);
}

static inline void
our_mask_restore(const sigset_t *before)
{
	uint64_t set;

	memcpy(&set, before, sizeof(set));
	our_mask_change(SIG_SETMASK, &set, NULL);
}

/* For sa_mask: really every signal, while a handler of ours runs. */
static inline void
our_mask_fill(sigset_t *ret)
{
	memset(ret, 0xff, sizeof(*ret));
}

#endif
