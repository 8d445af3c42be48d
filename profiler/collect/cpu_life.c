/*
 * cpu_life.c - threads that are born and end, as the hooks tell, and forks.
 *
 * What a stranger would get wrong:
 * - Around fork() the signal is blocked, since the kernel restarts a fork that a
 *   signal interrupts, for ever if the address space is large enough; and `lock`
 *   is held, so that the child can give back what the windows hold.
 * - Threads that come through the pthread_create hook take `lock` with all signals
 *   blocked: a handler of the daemon that forks must not find it held below it.
 * - Where the program has put itself under a seccomp filter they do nothing: timers and clocks
 *   are system calls.  The next look arms those threads, and finds them gone.
 *
 * Tests: tests/test_cpu.c, tests/test_cpu_guest.c, tests/test_cpu_threads.c.
 */
#include <config.h>

#include "cpu.h"

#include <errno.h>
#include <signal.h>

#include "cpu_parts.h"
#include "cpu_ring.h"
#include "filtered.h"
#include "fork.h"
#include "hooks_threads.h"
#include "labels_thread.h"
#include "own_mask.h"
#include "stack_table.h"
#include "unwind.h"

/* ---- threads that come and go, seen by the hook ---- */

struct quiet {
	sigset_t mask;
	int      cancel; /* what the daemon's thread has it at */
};

/* Arming reads a file, where a thread that was cancelled would end with the lock. */
static void
lock_quietly(struct quiet *ret)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &ret->cancel);
	own_mask_block(&ret->mask);
	pthread_mutex_lock(&cpu_engine.lock);
}

static void
unlock_quietly(const struct quiet *q)
{
	pthread_mutex_unlock(&cpu_engine.lock);
	own_mask_restore(&q->mask);
	pthread_setcancelstate(q->cancel, NULL);
}

void
cpu_thread_started(void)
{
	struct quiet quiet;
	int          saved = errno;

	if (!atomic_load_explicit(&cpu_engine.running, memory_order_relaxed) || filtered())
		return;
	lock_quietly(&quiet);
	if (atomic_load(&cpu_engine.running) && cpu_engine.signal_number)
		cpu_timers_self_add();
	unlock_quietly(&quiet);
	errno = saved;
}

void
cpu_thread_ending_from(const void *start_routine)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	uintptr_t          pcs[STACK_FRAMES_MAX];
	struct cpu_sample  s = { .pcs = pcs };
	struct quiet       quiet;
	int                saved = errno, truncated;

	if (!atomic_load_explicit(&cpu_engine.running, memory_order_relaxed) || filtered())
		return;
	lock_quietly(&quiet);
	if (atomic_load(&cpu_engine.running) && (s.weight = cpu_timers_self_remove(&s.slot)) > 0) {
		/* Where it was when those periods passed is not known; where it
		 * began is, and is nobody's own cost. */
		pcs[s.count++] = STACK_PSEUDO_ENDED;
		if (start_routine)
			pcs[s.count++] = (uintptr_t)start_routine;
		else
			s.count += unwind_capture_guess(&regs, pcs + 1, STACK_FRAMES_MAX - 1, &truncated);
		s.slot = 0;
		s.labels = labels_here();
		if (!cpu_ring_add(&s))
			labels_unref(s.labels);
	}
	unlock_quietly(&quiet);
	errno = saved;
}

void
cpu_thread_ending(void)
{
	cpu_thread_ending_from(NULL);
}

static void
on_started(const struct hooks_threads_note *note, const void *routine)
{
	(void)note;
	(void)routine;
	cpu_thread_started();
}

HOOKS_THREADS_SLOT(HOOKS_THREADS_CPU, .started = on_started, .ending = cpu_thread_ending_from);

/* ---- fork ---- */

static int fork_blocked; /* lock: the signal that fork_prepare blocked, or 0 */

static void
signal_mask(int how, int number)
{
	uint64_t one = number ? OWN_MASK_BIT(number) : 0;

	if (number)
		own_mask_change(how, &one, NULL);
}

static void
fork_prepare(void)
{
	sigset_t now;

	pthread_mutex_lock(&cpu_engine.lock);
	own_mask_change(SIG_BLOCK, NULL, &now);
	fork_blocked = 0;
	if (atomic_load(&cpu_engine.running) && cpu_engine.signal_number && !sigismember(&now, cpu_engine.signal_number))
		fork_blocked = cpu_engine.signal_number;
	signal_mask(SIG_BLOCK, fork_blocked);
}

static void
fork_parent(void)
{
	int number = fork_blocked; /* another's as soon as unlocked */

	pthread_mutex_unlock(&cpu_engine.lock);
	signal_mask(SIG_UNBLOCK, number);
}

static void
fork_child(void)
{
	int number = fork_blocked;

	cpu_forked();
	signal_mask(SIG_UNBLOCK, number);
}

FORK_SLOT(FORK_CPU, fork_prepare, fork_parent, fork_child);
