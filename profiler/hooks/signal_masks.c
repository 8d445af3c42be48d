/*
 * signal_masks.c - masks and handlers that the program sets, while ours stay in place.
 *
 * A thread that blocks every signal would have no CPU profile, and one that resets every
 * signal would die of ours.  The hooks of pthread_sigmask(), sigprocmask(), sigaction() and
 * signal() lead here:
 *
 *     mask with ours and SIGSTKFLT    ours is left out.  The bit of SIGSTKFLT stands for both:
 *                                     in what is reported ours is put back
 *     mask with one of the two        means that signal: ours is really blocked
 *     our handler                     reported as SIG_DFL; set to that, it stays
 *     a handler in the place of ours  its signal is not ours any more, from before it is there
 *     a handler with SA_ONSTACK       ours is blocked while it runs, and that is not reported
 *
 * What a stranger would get wrong:
 * - Nothing is remembered of a thread.  SIGSTKFLT is a signal that no kernel and no program
 *   sends, so its bit is free to tell what the program set, and the kernel keeps that bit
 *   for us: through handlers, siglongjmp(), setcontext(), new threads, fork and exec.
 * - Who blocks SIGSTKFLT and not ours finds neither blocked: there is no bit for that.
 * - A program that waits for our signal blocks it by name; a mask of all of them only says
 *   "leave me alone".
 * - The kernel puts a frame of some KiB on the alternate stack before a handler runs, and
 *   kills where it does not fit.  On a stack of SIGSTKSZ there is room for one.
 * - All of it is called from handlers of the program, and locks nothing.
 * - Waits that take a mask (pselect, ppoll, epoll_pwait, sigsuspend) need nothing: a thread
 *   uses no CPU time in them, and what fell due is delivered with the mask of afterwards.
 *
 * Tests: tests/whole/program_signals.t.
 */
#include <config.h>

#include "signal_masks.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "abi.h"
#include "free_signal.h"
#include "our_mask.h"
#include "our_thread.h"
#include "thread_events.h"
#include "which_core.h"

#ifdef SIGSTKFLT
#define SHADOW OUR_MASK_BIT(SIGSTKFLT)
#else
#define SHADOW ((uint64_t)0) /* no mask is changed there */
#endif

#define SIGNALS_MAX 64 /* of the kernel, on all machines we support */

typedef int mask_fn(int how, const sigset_t *set, sigset_t *old);
typedef void (*handler_fn(int number, void (*handler)(int)))(int);

static struct {
	signal_masks_reserve_fn *_Atomic reserve;
	signal_masks_taken_fn *_Atomic taken;
	_Atomic uint64_t cpu; /* signals of the CPU profile, of now and of before */
	_Atomic uint64_t guarded[SIGNALS_MAX + 1]; /* by number: what we have added to sa_mask */
} calls;

static bool
watching(void)
{
	return HOOKS_HAVE(signals) && __atomic_load_n(&component_hooks.signal_state, __ATOMIC_ACQUIRE) == HOOKS_ON &&
	       hooks_are_ours();
}

/* ---- masks ---- */

static uint64_t
first_word(const sigset_t *set)
{
	uint64_t word;

	memcpy(&word, set, sizeof(word));
	return word;
}

static void
first_word_set(sigset_t *set, uint64_t word)
{
	memcpy(set, &word, sizeof(word));
}

/* The signal that stays deliverable; 0: there is none.  Its handler is there from now on. */
static uint64_t
signal_of_profile(void)
{
	sigset_t now;
	uint64_t blocked, bit;
	int      number, saved = errno; /* pthread_sigmask() leaves it alone */

	our_mask_change(SIG_BLOCK, NULL, &now);
	blocked = first_word(&now);
	number = atomic_load(&calls.reserve)(blocked & SHADOW ? 0 : blocked);
	errno = saved;
	if (number < 0)
		return 0;
	bit = OUR_MASK_BIT(number);
	atomic_fetch_or(&calls.cpu, bit);
	return bit;
}

static uint64_t
mask_changed(int how, uint64_t set)
{
	uint64_t ours = atomic_load(&calls.cpu);

	if (how == SIG_UNBLOCK)
		return set & ours ? set | SHADOW : set;
	if (!(set & SHADOW))
		return set;
	if (!(ours & set)) /* none yet, or it is left out by name */
		ours = set & OUR_MASK_BIT(SIGPROF) ? signal_of_profile() : 0;
	return set & ours ? set & ~ours : set & ~SHADOW;
}

static int
mask_call(uint32_t name, int how, const sigset_t *set, sigset_t *old)
{
	mask_fn *next = (mask_fn *)component_hooks.next[name];
	sigset_t changed;
	int      r;

	if (set && SHADOW) {
		changed = *set;
		first_word_set(&changed, mask_changed(how, first_word(set)));
		set = &changed;
	}
	r = next(how, set, old);
	if (r == 0 && old && first_word(old) & SHADOW)
		first_word_set(old, first_word(old) | atomic_load(&calls.cpu));
	return r;
}

void
signal_masks_thread(void)
{
	sigset_t now;
	uint64_t ours;

	if (!SHADOW || !watching() || our_thread_is())
		return;
	our_mask_change(SIG_BLOCK, NULL, &now);
	if (!(first_word(&now) & SHADOW) || !(first_word(&now) & OUR_MASK_BIT(SIGPROF)))
		return;
	ours = signal_of_profile();
	if (ours)
		our_mask_change(SIG_UNBLOCK, &ours, NULL);
}

/* Or it is born of one that blocked all before anybody watched. */
THREAD_EVENTS_SLOT(THREAD_EVENTS_SIGNALS, .begin = signal_masks_thread);

/* ---- handlers ---- */

/* As the kernel sees it: by the address alone, whatever the flags say. */
static bool
is_default(const struct sigaction *act)
{
	return act->sa_handler == SIG_DFL;
}

static bool
on_alternate_stack(const struct sigaction *act)
{
	return act->sa_flags & SA_ONSTACK && act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN;
}

/* It is the program's from now on: no timer is to send it, and its masks are to hold it. */
static void
give(int number, bool done)
{
	if (!done)
		atomic_fetch_and(&calls.cpu, ~OUR_MASK_BIT(number));
	atomic_load(&calls.taken)(number, done);
}

/* Of a signal that has our handler now. */
static int
our_action_call(int number, const struct sigaction *act, struct sigaction *old)
{
	static const struct sigaction none = { .sa_handler = SIG_DFL };
	int                           r = 0;

	if (act && !is_default(act)) {
		give(number, false);
		r = free_signal_action(number, act, old);
		give(number, true);
	}
	if (r == 0 && old)
		*old = none;
	return r;
}

static int
action_call(int number, const struct sigaction *act, struct sigaction *old)
{
	uint64_t         guard = 0, guarded;
	struct sigaction changed;
	int              r;

	if (number < 1 || number > SIGNALS_MAX)
		return free_signal_action(number, act, old);
	if (free_signal_has(number))
		return our_action_call(number, act, old);
	if (act && is_default(act) && free_signal_taken() & OUR_MASK_BIT(number))
		return free_signal_again(number, old);
	if (act && on_alternate_stack(act)) {
		changed = *act;
		guard = free_signal_taken() & ~first_word(&act->sa_mask);
		first_word_set(&changed.sa_mask, first_word(&act->sa_mask) | guard);
	}
	guarded = atomic_load(&calls.guarded[number]);
	r = free_signal_action(number, guard ? &changed : act, old);
	/* A child of vfork() resets its handlers in here, too, and has its parent's memory. */
	if (r == 0 && act && act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN)
		atomic_store(&calls.guarded[number], guard);
	if (r == 0 && old)
		first_word_set(&old->sa_mask, first_word(&old->sa_mask) & ~guarded);
	return r;
}

/* signal() is left to the libc where nothing is to be told otherwise: it alone knows which
 * kind of handler the program's standard asks for. */
static long
handler_call(int number, uintptr_t handler)
{
	struct sigaction act = { .sa_handler = SIG_DFL, .sa_flags = SA_RESTART }, old;
	uint64_t         bit = number >= 1 && number <= SIGNALS_MAX ? OUR_MASK_BIT(number) : 0;
	bool             ours = free_signal_taken() & bit && (void (*)(int))handler != SIG_ERR;
	long             before;

	if (ours && (void (*)(int))handler == SIG_DFL)
		return action_call(number, &act, &old) ? (long)SIG_ERR : (long)old.sa_handler;
	ours = ours && free_signal_has(number);
	if (ours)
		give(number, false);
	if (bit)
		atomic_store(&calls.guarded[number], 0);
	before = (long)((handler_fn *)component_hooks.next[HOOKS_signal])(number, (void (*)(int))handler);
	if (!ours)
		return before;
	give(number, true);
	return before == (long)SIG_ERR ? before : (long)SIG_DFL;
}

/* A handler of ours is there: no handler of the program on its alternate stack is to be
 * interrupted by it, as there may be room for one frame of the kernel and not for two. */
static void
on_installed(int number)
{
	struct sigaction now, before;

	if (!watching())
		return;
	for (int i = 1; i <= SIGNALS_MAX; i++) {
		uint64_t bit = OUR_MASK_BIT(number);

		if (i == number || free_signal_action(i, NULL, &now) < 0 || !on_alternate_stack(&now) ||
		    free_signal_has(i) || first_word(&now.sa_mask) & bit)
			continue;
		atomic_fetch_or(&calls.guarded[i], bit);
		first_word_set(&now.sa_mask, first_word(&now.sa_mask) | bit);
		if (free_signal_action(i, &now, &before) == 0 &&
		    (before.sa_flags != now.sa_flags || before.sa_sigaction != now.sa_sigaction))
			free_signal_action(i, &before, NULL); /* somebody was quicker: put it back */
	}
}

/* ---- all of them ---- */

static long
on_call(uint32_t name, uintptr_t a, uintptr_t b, uintptr_t c)
{
	switch (name) {
	case HOOKS_pthread_sigmask:
	case HOOKS_sigprocmask:
		return mask_call(name, (int)a, (const sigset_t *)b, (sigset_t *)c);
	case HOOKS_sigaction:
		return action_call((int)a, (const struct sigaction *)b, (struct sigaction *)c);
	default:
		return handler_call((int)a, b);
	}
}

void
signal_masks_watch(signal_masks_reserve_fn *reserve, signal_masks_taken_fn *taken)
{
	if (!HOOKS_HAVE(signals) || !hooks_claim())
		return;
	component_hooks.resolve();
	atomic_store(&calls.reserve, reserve);
	atomic_store(&calls.taken, taken);
	free_signal_watch(on_installed);
	component_hooks.signals = on_call;
	__atomic_store_n(&component_hooks.signal_state, HOOKS_ON, __ATOMIC_RELEASE);
	signal_masks_thread();
}
