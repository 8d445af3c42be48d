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

static void
action_of(struct sigaction *ret, free_signal_fn *handler)
{
	*ret = (struct sigaction){ .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
	own_mask_fill(&ret->sa_mask);
}

int
free_signal_again(int number, struct sigaction *ret_before)
{
	struct sigaction ours;

	action_of(&ours, handlers[number]);
	return signal_calls_real(number, &ours, ret_before);
}

static bool
install(int number, uint64_t avoid, free_signal_fn *handler)
{
	struct sigaction ours, before;
	uint64_t         bit = OWN_MASK_BIT(number), was;

	action_of(&ours, handler);
	if (avoid & OWN_MASK_BIT(number))
		return false;
	if (signal_calls_real(number, NULL, &before) < 0 || before.sa_flags & SA_SIGINFO || before.sa_handler != SIG_DFL)
		return false;
	/* Noted first: who sets it to its default from now on gets ours again. */
	handlers[number] = handler;
	was = atomic_fetch_or(&taken, bit);
	if (signal_calls_real(number, &ours, &before) < 0)
		goto not_ours;
	if (!(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL) {
		signal_calls_guard(number);
		return true;
	}
	signal_calls_real(number, &before, NULL); /* somebody was quicker: put it back */
not_ours:
	if (!(was & bit))
		atomic_fetch_and(&taken, ~bit);
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
