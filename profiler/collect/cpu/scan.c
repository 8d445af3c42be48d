/*
 * scan.c - which threads there are, and what their clocks say.
 *
 *     scan    walks /proc/self/task: arms what is new, gives up what is gone
 *     look    asks whether a scan would find anything
 *     sweep   charges the threads that block the signal
 *     unseen  CPU time of the process that no thread we know of has used
 *
 * A scan costs some 60 us, and twenty a second were most of what a window took.  So
 * a look reads the clock of each thread that is known, some hundred ns each: that
 * tells who is gone.  What the kernel then counts more threads than are known
 * (the first thread's status) were born: only then, and once a second, it scans.
 * A thread that ended and one that was born meanwhile do not hide each other.
 * The same file says whether the program has filtered its system calls (seccomp.h).
 *
 * What a stranger would get wrong:
 * - The file stays open between looks, since to open it costs as much again as to read
 *   it: the daemon may close every descriptor it finds and get the number for a file of
 *   its own, of which nobody must read.  Device and inode tell.
 * - Clocks first, then the count: a thread that is born in between is one too many,
 *   and one that ends is noticed by the next look.
 * - Without /proc there is no count, and every look is a scan: threads are those that are known (threads_known.c).
 * - Threads without a timer (RLIMIT_SIGPENDING) are not known one by one, and a place
 *   may have become free for them: then, too, every look is a scan.
 *
 * A thread that no hook tells of may be born and end between two looks, and one that is
 * known ends after its last sample; of every thread the kernel spends some us before its
 * first instruction and behind its last.  What they used is the process' clock less the
 * threads' clocks, less what threads that are gone were charged for: of two such sums
 * the difference is what a window has missed.
 * - The kernel brings the process' clock up to date for the thread that asks; for others
 *   that run, at a tick.  Reading a thread's clock does it too, so those are read first.
 * - Clocks cannot be read all at once.  A window begins with a sum that is rather too
 *   large and ends with one that is rather too small: what it shows was used.
 *
 * Tests: tests/cpu/test_cpu.c, tests/cpu/test_guest.c.
 */
#include <config.h>

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "our_fd.h"
#include "our_thread.h"
#include "proc_self.h"
#include "seccomp.h"
#include "slots.h"
#include "timers.h"

/* A running thread takes its signal within a tick, 10 ms at most.  One that is so far
 * behind may block the signal: that is then looked up.  Or it works in step with the tick, for
 * less than a millisecond after each, say, and none meets it. */
#define LATE_NS    60000000LL

static struct our_fd_kept scan_status = { .fd = -1 }; /* the first thread's */

/* ---- the walk ---- */

struct walk {
	bool                    first;
	struct cpu_timers_state state;
};

static void
walk_at(void *arg, pid_t tid)
{
	struct walk *w = arg;
	uint32_t     i = cpu_slot_find(tid);
	bool         own = our_thread_has(tid);
	int          err;

	if (i && own) { /* it had only just begun when it was armed */
		cpu_timers_retire(i);
		i = 0;
	}
	if (i) {
		cpu_slot_at(i)->seen = cpu_slots_walk();
		w->state.threads++;
		return;
	}
	if (own)
		return;
	w->state.threads++;
	err = cpu_timers_arm(tid, !w->first);
	if (err < 0 && err != -ESRCH) {
		w->state.no_slot++;
		w->state.why = -err;
	}
}

int
cpu_timers_scan(bool first, struct cpu_timers_state *ret)
{
	/* One that found no place before may have lived before the engine ran. */
	struct walk w = { .first = first || ret->no_slot > 0, .state.blocking = ret->blocking };
	struct cpu_slot *s;
	uint32_t         i;
	int              err;

	cpu_slots_walk_begin();
	err = proc_self_threads(walk_at, &w);
	if (err < 0)
		return err;
	for (i = 1; i < cpu_slots_end(); i++) {
		s = cpu_slot_at(i);
		/* The kernel's list may skip a thread where another one ends meanwhile. */
		if (s->tid && s->seen != cpu_slots_walk() && thread_clock_ns(s->tid) < s->armed_ns)
			cpu_timers_retire(i);
	}
	*ret = w.state;
	return 0;
}

/* ---- would it find anything? ---- */

/* Threads of the process, by the kernel's count; 0: it cannot be had. */
static unsigned long
threads_count(void)
{
	unsigned long ret;

	if (!our_fd_is_kept(&scan_status, NULL)) {
		our_fd_kept_close(&scan_status); /* the daemon has closed it */
		our_fd_keep(&scan_status, proc_self_thread_open((pid_t)syscall(SYS_getpid), "status"));
		if (!our_fd_is_kept(&scan_status, NULL))
			return 0;
	}
	seccomp_by(proc_self_count(scan_status.fd, &ret));
	return ret;
}

/* Threads of the program that are known and alive; those that are gone are given up. */
static unsigned
known_count(void)
{
	struct cpu_slot *s;
	unsigned         n = 0, i;

	for (i = 1; i < cpu_slots_end(); i++) {
		s = cpu_slot_at(i);
		if (!s->tid)
			continue;
		if (thread_clock_ns(s->tid) < s->armed_ns)
			cpu_timers_retire(i);
		else
			n++;
	}
	return n;
}

int
cpu_timers_look(struct cpu_timers_state *ret)
{
	unsigned known = known_count();
	int      err;

	if (threads_count() == known + our_thread_count() && ret->no_slot == 0) {
		ret->threads = known;
		return 0;
	}
	err = cpu_timers_scan(false, ret);
	return err < 0 ? err : 1;
}

void
cpu_scan_close(void)
{
	our_fd_kept_close(&scan_status);
}

void
cpu_scan_forked(void)
{
	scan_status.fd = -1; /* closed by our_fd.c */
}

/* ---- threads that block the signal ---- */

/* Of one that is late.  A thread may block every signal for a moment only.  A sweep does not wait for the end of that, as forks
 * wait for the sweep: such a thread is charged if the next sweep finds it so, too. */
static bool
blocks(struct cpu_slot *s)
{
	uint64_t blocked = proc_self_blocked_now(s->tid);
	bool     shut = blocked & PROC_SELF_SHUT, before = s->shut;

	s->shut = shut;
	return (!shut || before) && blocked >> (cpu_timers_signal_number() - 1) & 1;
}

uint64_t
cpu_timers_sweep(cpu_timers_late_fn *late, void *arg, struct cpu_timers_state *ret)
{
	struct cpu_slot *s;
	uint64_t         missing, under_way = 0;
	uint32_t         i;
	int64_t          cpu_ns;
	bool             is_late;

	ret->blocking = 0;
	ret->overdue = 0;
	for (i = 1; i < cpu_slots_end(); i++) {
		s = cpu_slot_at(i);
		if (!s->tid)
			continue;
		cpu_ns = thread_clock_ns(s->tid);
		if (cpu_ns < s->armed_ns || our_thread_has(s->tid)) {
			/* Gone, or another thread by its id, or one of ours that had just begun. */
			cpu_timers_retire(i);
			continue;
		}
		if (cpu_slot_ended(s))
			continue;
		missing = cpu_slot_missing(s, cpu_ns);
		is_late = (int64_t)missing * cpu_slots_period_ns() >= LATE_NS;
		s->shut = s->shut && is_late;
		if ((missing > 0 && s->charged > 0) || (is_late && blocks(s))) {
			s->charged += missing;
			late(arg, missing);
		} else {
			/* Deep in the kernel, or at work only between two ticks: it will tell where it was.  Or blocks() will. */
			under_way += missing;
			ret->overdue += is_late ? missing : 0;
		}
		ret->blocking += s->charged > 0;
	}
	return under_way;
}

/* ---- time that nobody was seen to use ---- */

/* Of all threads that are known or were. */
static int64_t
known_ns(void)
{
	struct cpu_slot *s;
	int64_t          sum = 0, cpu_ns;
	uint32_t         i;

	for (i = 1; i < cpu_slots_end(); i++) {
		s = cpu_slot_at(i);
		if (!s->tid)
			continue;
		cpu_ns = thread_clock_ns(s->tid);
		if (cpu_ns < s->armed_ns)
			cpu_timers_retire(i);
		else
			sum += cpu_ns;
	}
	return sum + cpu_timers_ended_ns() + our_thread_cpu_ns();
}

int64_t
cpu_timers_unseen(bool begin)
{
	int64_t known = known_ns(), all = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	return all - (begin ? known : known_ns());
}
