/*
 * free_signal.c - a signal for a handler of ours, taken from nobody.
 *
 * What a stranger would get wrong:
 * - Between the look and the installation another thread of the daemon may install its
 *   own; then that one is put back.
 * - A signal at its default may be used all the same: who waits for it by signalfd() or
 *   sigwait() blocks it, and needs no handler.
 * - Go's runtime handles every signal but one.  Then that one is for both of our handlers,
 *   each of which leaves alone what is not its own.
 *
 * Tests: tests/cpu/test_signals.c, tests/threads/thousand_blocked.t, tests/whole/languages.t.
 */
#include <config.h>

#include "free_signal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "abi.h"
#include "our_mask.h"

#define SIGNALS_MAX 64 /* of the kernel, on all machines we support */

typedef int action_fn(int number, const struct sigaction *act, struct sigaction *old);

static _Atomic uint64_t taken;
static free_signal_fn  *handlers[SIGNALS_MAX + 1];
static _Atomic(free_signal_fn *) sharing[2]; /* of the one signal that is for both */
static void (*_Atomic watcher)(int number);

int
free_signal_action(int number, const struct sigaction *act, struct sigaction *old)
{
	action_fn *next = HOOKS_HAVE(signals) ? (action_fn *)component_hooks.next[HOOKS_sigaction] : NULL;

	return next ? next(number, act, old) : sigaction(number, act, old);
}

void
free_signal_watch(void (*fn)(int number))
{
	atomic_store(&watcher, fn);
}

static void
on_shared(int number, siginfo_t *info, void *context)
{
	atomic_load(&sharing[0])(number, info, context);
	atomic_load(&sharing[1])(number, info, context);
}

static bool
is_installed(int number, free_signal_fn *handler)
{
	struct sigaction now;

	return number > 0 && free_signal_action(number, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
	       now.sa_sigaction == handler;
}

bool
free_signal_is(int number, free_signal_fn *handler)
{
	if (handler == atomic_load(&sharing[0]) || handler == atomic_load(&sharing[1]))
		return is_installed(number, handler) || is_installed(number, on_shared);
	return is_installed(number, handler);
}

uint64_t
free_signal_taken(void)
{
	return atomic_load(&taken);
}

bool
free_signal_has(int number)
{
	return number > 0 && number <= SIGNALS_MAX && atomic_load(&taken) & OUR_MASK_BIT(number) &&
	       is_installed(number, handlers[number]);
}

static void
action_of(struct sigaction *ret, free_signal_fn *handler)
{
	*ret = (struct sigaction){ .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
	our_mask_fill(&ret->sa_mask);
}

int
free_signal_again(int number, struct sigaction *ret_before)
{
	struct sigaction ours;

	action_of(&ours, handlers[number]);
	return free_signal_action(number, &ours, ret_before);
}

static bool
install(int number, uint64_t avoid, free_signal_fn *handler)
{
	struct sigaction ours, before;
	uint64_t         bit = OUR_MASK_BIT(number), was;
	void           (*tell)(int number);

	action_of(&ours, handler);
	if (avoid & OUR_MASK_BIT(number))
		return false;
	if (free_signal_action(number, NULL, &before) < 0 || before.sa_flags & SA_SIGINFO || before.sa_handler != SIG_DFL)
		return false;
	/* Noted first: who sets it to its default from now on gets ours again. */
	handlers[number] = handler;
	was = atomic_fetch_or(&taken, bit);
	if (free_signal_action(number, &ours, &before) < 0)
		goto not_ours;
	if (!(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL) {
		tell = atomic_load(&watcher);
		if (tell)
			tell(number);
		return true;
	}
	free_signal_action(number, &before, NULL); /* somebody was quicker: put it back */
not_ours:
	if (!(was & bit))
		atomic_fetch_and(&taken, ~bit);
	return false;
}

/* The signal of another handler of ours, for this one as well. */
static int
share(uint64_t avoid, free_signal_fn *handler)
{
	struct sigaction before;

	for (int number = 1; number <= SIGNALS_MAX; number++) {
		free_signal_fn *first = handlers[number];

		if (avoid & OUR_MASK_BIT(number) || !free_signal_has(number) || first == handler || first == on_shared)
			continue;
		atomic_store(&sharing[0], first);
		atomic_store(&sharing[1], handler);
		handlers[number] = on_shared;
		if (free_signal_again(number, &before) == 0 && before.sa_flags & SA_SIGINFO && before.sa_sigaction == first)
			return number;
		handlers[number] = first;
		free_signal_action(number, &before, NULL); /* somebody was quicker: put it back */
	}
	return -EBUSY;
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
	return share(avoid, handler);
}
