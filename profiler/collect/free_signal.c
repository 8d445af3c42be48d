/*
 * free_signal.c - a signal for a handler of ours, taken from nobody.
 *
 * What a stranger would get wrong:
 * - Between the look and the installation another thread of the daemon may install its
 *   own; then that one is put back.
 * - A signal at its default may be used all the same: who waits for it by signalfd() or
 *   sigwait() blocks it, and needs no handler.
 *
 * Tests: tests/test_cpu_signals.c, tests/threads.t.
 */
#include <config.h>

#include "free_signal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "own_mask.h"
#include "signal_calls.h"

#define SIGNALS_MAX 64 /* of the kernel, on all machines we support */

static _Atomic uint64_t taken;
static free_signal_fn  *handlers[SIGNALS_MAX + 1];

bool
free_signal_is(int number, free_signal_fn *handler)
{
	struct sigaction now;

	return number > 0 && signal_calls_real(number, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
	       now.sa_sigaction == handler;
}

uint64_t
free_signal_taken(void)
{
	return atomic_load(&taken);
}

bool
free_signal_has(int number)
{
	return number > 0 && number <= SIGNALS_MAX && atomic_load(&taken) & OWN_MASK_BIT(number) &&
	       free_signal_is(number, handlers[number]);
}

static bool
install(int number, uint64_t avoid, free_signal_fn *handler)
{
	struct sigaction ours = { .sa_sigaction = handler }, before;

	ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
	own_mask_fill(&ours.sa_mask);
	if (avoid & OWN_MASK_BIT(number))
		return false;
	if (signal_calls_real(number, NULL, &before) < 0 || before.sa_flags & SA_SIGINFO || before.sa_handler != SIG_DFL)
		return false;
	if (signal_calls_real(number, &ours, &before) < 0)
		return false;
	if (!(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL) {
		handlers[number] = handler;
		atomic_fetch_or(&taken, OWN_MASK_BIT(number));
		signal_calls_guard(number);
		return true;
	}
	signal_calls_real(number, &before, NULL); /* somebody was quicker: put it back */
	return false;
}

int
free_signal_take(int wanted, uint64_t avoid, free_signal_fn *handler)
{
	if (install(wanted, avoid, handler))
		return wanted;
	/* From the top: programs count theirs from SIGRTMIN. */
	for (int number = SIGRTMAX; number >= SIGRTMIN; number--)
		if (install(number, avoid, handler))
			return number;
	return -EBUSY;
}
