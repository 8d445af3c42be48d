/*
 * signals.c - masks and handlers that the program sets: the core hears of them.
 *
 * It answers as if its own signals were not there (hooks/signal_masks.c).  Until the
 * profiling server has been started a call costs one predicted branch.  Safe in handlers,
 * as the real functions are.
 *
 * Tests: tests/hooks/interposition.t, tests/hooks/cost.t, tests/whole/program_signals.t.
 */
#include "object.h"

#define OFF LIKELY(hooks_self.signal_state != HOOKS_ON)
/* Written before the state was, so read after it; no instruction on x86-64. */
#define CORE(...) (__atomic_thread_fence(__ATOMIC_ACQUIRE), hooks_self.signals(__VA_ARGS__))

int
hook_pthread_sigmask(uintptr_t a, uintptr_t b, uintptr_t c)
{
	return OFF ? NEXT(pthread_sigmask)(a, b, c) : (int)CORE(HOOKS_pthread_sigmask, a, b, c);
}

int
hook_sigprocmask(uintptr_t a, uintptr_t b, uintptr_t c)
{
	return OFF ? NEXT(sigprocmask)(a, b, c) : (int)CORE(HOOKS_sigprocmask, a, b, c);
}

int
hook_sigaction(uintptr_t a, uintptr_t b, uintptr_t c)
{
	return OFF ? NEXT(sigaction)(a, b, c) : (int)CORE(HOOKS_sigaction, a, b, c);
}

long
hook_signal(uintptr_t a, uintptr_t b)
{
	return OFF ? NEXT(signal)(a, b) : CORE(HOOKS_signal, a, b, 0);
}

EXPORT(pthread_sigmask);
EXPORT(sigprocmask);
EXPORT(sigaction);
EXPORT(signal);

/* ---- before we know what is behind us ---- */

#define EARLY(name)                                                                                \
	long early_##name(uintptr_t a, uintptr_t b, uintptr_t c)                                   \
	{                                                                                          \
		long (*next)(uintptr_t, uintptr_t, uintptr_t) =                                    \
			(long (*)(uintptr_t, uintptr_t, uintptr_t))next_early(HOOKS_##name, (void *)early_##name); \
                                                                                                   \
		return next ? next(a, b, c) : -1;                                                  \
	}

HOOKS_SIGNAL_NAMES(EARLY)
