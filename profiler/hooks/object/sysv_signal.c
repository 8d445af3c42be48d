/*
 * sysv_signal.c - signal() of source that is compiled for POSIX alone, without _DEFAULT_SOURCE.
 *
 * The headers give it another name there, that of System V's: the handler is removed as it is called, and its signal not
 * blocked.  glibc makes it of its own sigaction(), past our hook; this is the same, made of ours.
 *
 * Tests: tests/whole/program_signals.t.
 */
#include "object.h"

#include <errno.h>
#include <signal.h>

#define EXPORTED __attribute__((weak, visibility("default")))

EXPORTED __sighandler_t
__sysv_signal(int number, __sighandler_t handler)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER | SA_INTERRUPT) }, old;

	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	return hook_sigaction((uintptr_t)number, (uintptr_t)&act, (uintptr_t)&old) ? SIG_ERR : old.sa_handler;
}

extern __typeof__(__sysv_signal) sysv_signal EXPORTED __attribute__((alias("__sysv_signal")));
