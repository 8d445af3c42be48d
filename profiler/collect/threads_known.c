/*
 * threads_known.c - the threads of the program, where no folder of /proc lists them.
 *
 * Two sources: the hooks tell of each thread that begins and ends while profiling is
 * on.  For those that were there before, or where there are no hooks, the kernel is asked whether
 * a number is a thread of this process, by its CPU clock: from the first thread's number up to
 * that of whoever asks, who is as a rule the youngest.
 *
 * What a stranger would get wrong:
 * - The list is kept always, in a table of words: a daemon changes its root when it likes, and
 *   then it is too late to begin.
 * - A thread may end without a word (by a bare exit call).  Who has no CPU clock is gone, and one
 *   that has is a thread of ours by whatever name: no other process' number has one for us.
 * - Numbers are asked once each, and at most ASKED_MAX at a time: where they have wrapped, or
 *   are used up fast by other processes, threads without hooks may be missed.
 *
 * Tests: tests/threads/test_without_proc.c, tests/whole/restricted_process.t.
 */
#include <config.h>

#include "threads_known.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "our_thread.h"
#include "thread_events.h"
#include "thread_id.h"

#define PLACES    32768 /* threads; a power of two */
#define TRIES     64    /* places looked at for one */
#define ASKED_MAX 65536 /* numbers; some ten milliseconds */

static _Atomic pid_t known[PLACES];
static _Atomic pid_t asked_to; /* all numbers up to here */
static _Atomic unsigned tried; /* places, for any thread; 0: the table is untouched, and a fork child need not read it */

static _Atomic pid_t *
place_of(pid_t tid)
{
	unsigned most = atomic_load(&tried);

	for (unsigned i = 0; i < most; i++) {
		_Atomic pid_t *p = &known[((unsigned)tid + i) % PLACES];

		if (atomic_load_explicit(p, memory_order_relaxed) == tid)
			return p;
	}
	return NULL;
}

static void
add(pid_t tid)
{
	pid_t none;

	if (place_of(tid))
		return;
	for (unsigned i = 0; i < TRIES; i++) {
		/* Before it is there: a child of fork() may see one of the two only. */
		for (unsigned most = atomic_load(&tried); most < i + 1;)
			atomic_compare_exchange_weak(&tried, &most, i + 1);
		none = 0;
		if (atomic_compare_exchange_strong(&known[((unsigned)tid + i) % PLACES], &none, tid))
			return;
	}
}

void
threads_known_begin(void)
{
	add(thread_id_self());
}

void
threads_known_end(void)
{
	pid_t          tid = thread_id_self();
	_Atomic pid_t *p = place_of(tid);

	if (p)
		atomic_store(p, 0);
}

THREAD_EVENTS_SLOT(THREAD_EVENTS_KNOWN, .begin = threads_known_begin, .end = threads_known_end);

static void
ask(void)
{
	pid_t to = thread_id_self(), from = (pid_t)syscall(SYS_getpid), past = atomic_load(&asked_to);

	if (past >= from)
		from = past + 1;
	if (to - from > ASKED_MAX)
		from = to - ASKED_MAX;
	for (pid_t tid = from; tid <= to; tid++)
		if (!our_thread_has(tid) && thread_clock_ns(tid) >= 0)
			add(tid);
	if (to > past)
		atomic_store(&asked_to, to);
}

void
threads_known_each(proc_self_thread_fn *fn, void *arg)
{
	ask();
	for (unsigned i = 0; i < PLACES; i++) {
		pid_t tid = atomic_load_explicit(&known[i], memory_order_relaxed), same = tid;

		if (tid == 0 || our_thread_has(tid))
			continue;
		if (thread_clock_ns(tid) >= 0)
			fn(arg, tid);
		else
			atomic_compare_exchange_strong(&known[i], &same, 0);
	}
}

void
threads_known_forked(void)
{
	atomic_store(&asked_to, 0);
	if (!atomic_exchange(&tried, 0))
		return;
	for (unsigned i = 0; i < PLACES; i++)
		if (atomic_load_explicit(&known[i], memory_order_relaxed))
			atomic_store(&known[i], 0);
}
