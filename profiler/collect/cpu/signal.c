/*
 * signal.c - the handler behind the CPU timers, from signal to ring.
 *
 * The handler takes no lock, allocates nothing, calls nothing that the loader
 * might have to bind first, and touches no errno.  It finds out by the signal's
 * value whose timer it was, walks the interrupted stack and adds it to the ring.
 * Its stack: STACK_FRAMES_MAX pcs, 1 KiB, and some hundred bytes.
 *
 * What a stranger would get wrong:
 * - The handler is never removed.  A signal may be queued when its timer is
 *   deleted, and the default of SIGPROF and of real-time signals is to kill.
 *   Disabled, the handler returns at once.
 * - Before memory that handlers use is unmapped, those at work must have ended:
 *   they count themselves in before they look whether they may go on, and
 *   disabling forbids before it looks at the count.
 * - A SIGPROF that is not from our timers is none of our business.  Ours was not
 *   there to be replaced, so there is nobody to pass it on to; it is ignored.
 *
 * Why not always a real-time signal: strace, gdb and people know SIGPROF.
 *
 * Tests: tests/cpu/test_cpu.c, tests/cpu/test_signals.c.
 */
#include <config.h>

#include "signal.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "free_signal.h"
#include "labels/thread.h"
#include "proc_self.h"
#include "ring.h"
#include "slots.h"
#include "stack_table.h"
#include "unwind.h"

/* Of a handler with all that it calls: 2 KiB, and what the entry of a call may take. */
#define STACK_BYTES 3072

/* How long disabling waits for handlers at work, which take microseconds unless
 * their thread gets no processor. */
#define QUIET_WAIT_STEPS 2000
#define QUIET_STEP_NS    1000000L

static struct {
	_Atomic int      enabled;
	_Atomic int      at_work;
	_Atomic bool     stuck; /* one was waited for in vain, and has not ended since */
	_Atomic uint64_t longest_ns, sum_ns, count; /* since enabled */
	_Atomic uint64_t sum_before_ns, count_before;
	_Atomic int      number; /* 0: none installed yet */
	cpu_watch_fn *_Atomic watcher;
} sampler;

/* BEGIN SIGNAL CONTEXT */

/* With the thread's labels.  It holds them itself, so to give them back frees nothing. */
static void
sample_put(struct cpu_sample *s, uintptr_t stack, size_t bytes)
{
	s->labels = labels_here();
	if (!cpu_ring_add_copy(s, stack, bytes))
		labels_unref(s->labels);
}

static __attribute__((noinline)) void /* nothing of it on the stack during the walk */
sample_add(uint32_t slot, uint32_t weight, const uintptr_t *pcs, unsigned count, bool truncated)
{
	struct cpu_sample s = { .slot = slot, .weight = weight, .pcs = pcs, .count = count, .truncated = truncated };

	sample_put(&s, 0, 0);
}

static void
sample_tell(const uintptr_t *pcs, unsigned count, uint32_t weight)
{
	cpu_watch_fn *fn = atomic_load_explicit(&sampler.watcher, memory_order_relaxed);

	if (fn)
		fn(pcs, count, weight);
}

static __attribute__((noinline)) void
sample_take(const siginfo_t *info, const void *context)
{
	uintptr_t          pcs[STACK_FRAMES_MAX];
	struct unwind_regs regs;
	uint32_t           slot, weight;
	unsigned           count;
	int                truncated = 0;

	if (!cpu_slot_expired(info, &slot, &weight))
		return;
	unwind_regs_from_ucontext(&regs, context);
	count = unwind_capture_guess(&regs, pcs, STACK_FRAMES_MAX, &truncated);
	sample_add(slot, weight, pcs, count, truncated != 0);
	sample_tell(pcs, count, weight);
}

/* The stack itself instead of its walk, for a thread of ours to walk. */
static __attribute__((noinline)) void /* not both on one stack */
sample_copy(const siginfo_t *info, const void *context)
{
	uintptr_t         words[UNWIND_WORDS];
	struct cpu_sample s = { .pcs = words, .count = UNWIND_WORDS };
	size_t            bytes;
	unsigned          known;

	if (!cpu_slot_expired(info, &s.slot, &s.weight))
		return;
	bytes = unwind_take(context, words);
	known = words[UNWIND_WORD_PC] != 0;
	if (bytes > 0) {
		sample_put(&s, words[UNWIND_WORD_SP], bytes);
		sample_tell(&words[UNWIND_WORD_PC], known, s.weight); /* the pc: a trace has no room for stacks */
		return;
	}
	sample_add(s.slot, s.weight, &words[UNWIND_WORD_PC], known, true); /* no stack: the pc alone */
}

/* No room for a stack: the pc alone. */
static __attribute__((noinline)) void
sample_pc(const siginfo_t *info, const void *context)
{
	struct unwind_regs regs;
	uintptr_t          pc;
	uint32_t           slot, weight;

	if (!cpu_slot_expired(info, &slot, &weight))
		return;
	unwind_regs_from_ucontext(&regs, context);
	pc = regs.pc;
	sample_add(slot, weight, &pc, pc != 0, true);
}

static void
time_note(uint64_t took)
{
	uint64_t longest = atomic_load_explicit(&sampler.longest_ns, memory_order_relaxed);

	atomic_fetch_add_explicit(&sampler.sum_ns, took, memory_order_relaxed);
	atomic_fetch_add_explicit(&sampler.count, 1, memory_order_relaxed);
	while (took > longest && !atomic_compare_exchange_weak_explicit(&sampler.longest_ns, &longest, took,
									memory_order_relaxed, memory_order_relaxed))
		;
}

static void
on_signal(int number, siginfo_t *info, void *context)
{
	int64_t begin;

	(void)number;
	atomic_fetch_add(&sampler.at_work, 1);
	if (atomic_load(&sampler.enabled)) {
		begin = clock_ns(CLOCK_MONOTONIC);
		if (free_signal_short_of_stack(context, STACK_BYTES))
			sample_pc(info, context);
		else if (unwind_takes())
			sample_copy(info, context);
		else
			sample_take(info, context);
		time_note((uint64_t)(clock_ns(CLOCK_MONOTONIC) - begin));
	}
	atomic_fetch_sub(&sampler.at_work, 1);
}

/* END SIGNAL CONTEXT */

bool
cpu_signal_ours(int number)
{
	return free_signal_is(number, on_signal);
}

int
cpu_signal_install(void)
{
	return cpu_signal_reserve(proc_self_wants((pid_t)syscall(SYS_getpid)));
}

int
cpu_signal_reserve(uint64_t avoid)
{
	int number = atomic_load(&sampler.number), taken;

	if (cpu_signal_ours(number))
		return number;
	taken = free_signal_take(SIGPROF, avoid, on_signal);
	/* Of two at once each has installed one; the first is used. */
	if (taken > 0 && atomic_compare_exchange_strong(&sampler.number, &number, taken))
		return taken;
	return taken > 0 ? number : taken;
}

void
cpu_signal_name(int number, char *buf, size_t size)
{
	if (number == SIGPROF)
		snprintf(buf, size, "SIGPROF");
	else if (number == SIGRTMAX)
		snprintf(buf, size, "SIGRTMAX");
	else
		snprintf(buf, size, "SIGRTMAX-%d", SIGRTMAX - number);
}

/*
 * Everything the handler calls is called once here, so that what is bound lazily
 * is bound outside of it.
 */
static void
rehearse(void)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	uintptr_t          pcs[STACK_FRAMES_MAX];
	int                truncated;

	time_note((uint64_t)(clock_ns(CLOCK_MONOTONIC) - clock_ns(CLOCK_MONOTONIC)) & 0); /* cleared again by the caller */
	unwind_capture_guess(&regs, pcs, STACK_FRAMES_MAX, &truncated);
}

void
cpu_signal_enable(void)
{
	uint64_t sum_ns = atomic_load(&sampler.sum_ns), count = atomic_load(&sampler.count);

	rehearse();
	atomic_store(&sampler.longest_ns, 0);
	atomic_store(&sampler.sum_ns, 0);
	atomic_store(&sampler.count, 0);
	atomic_fetch_add(&sampler.sum_before_ns, sum_ns);
	atomic_fetch_add(&sampler.count_before, count);
	atomic_store(&sampler.enabled, 1);
}

bool
cpu_signal_disable(void)
{
	const struct timespec step = { 0, QUIET_STEP_NS };
	int                   steps = sampler.stuck ? 0 : QUIET_WAIT_STEPS; /* once for each */

	atomic_store(&sampler.enabled, 0);
	for (int i = 0; i < steps && atomic_load(&sampler.at_work) > 0; i++)
		nanosleep(&step, NULL);
	sampler.stuck = atomic_load(&sampler.at_work) > 0;
	return !sampler.stuck;
}

void
cpu_signal_watch(cpu_watch_fn *fn)
{
	atomic_store(&sampler.watcher, fn);
}

bool
cpu_signal_stuck(void)
{
	return sampler.stuck && atomic_load(&sampler.at_work) > 0;
}

void
cpu_signal_forked(void)
{
	atomic_store(&sampler.enabled, 0);
	atomic_store(&sampler.at_work, 0);
	atomic_store(&sampler.watcher, NULL);
	sampler.stuck = false;
}

uint64_t
cpu_signal_mean_ns(void)
{
	uint64_t count = atomic_load(&sampler.count);

	return count ? atomic_load(&sampler.sum_ns) / count : 0;
}

uint64_t
cpu_signal_all(uint64_t *ret_ns)
{
	*ret_ns = atomic_load(&sampler.sum_before_ns) + atomic_load(&sampler.sum_ns);
	return atomic_load(&sampler.count_before) + atomic_load(&sampler.count);
}

uint64_t
cpu_signal_longest_ns(void)
{
	return atomic_load(&sampler.longest_ns);
}
