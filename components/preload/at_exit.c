/*
 * at_exit.c - a program that ends by exit(3) within a window leaves what was measured.
 *
 * What a stranger would get wrong:
 * - This thread may be under a seccomp filter of the program's, so where nobody measures there is no system call.
 * - Its table of descriptors is not the server's (apart.h): it asks the server's thread, and waits by futex(2).
 * - An answer that is written is not yet with the kernel: the server's thread says when its connections owe nothing.
 * - A child of vfork() that calls exit() runs in its parent's memory, and must not end what the parent has.
 * - Who is the last thread of a process calls exit() and with it what the program wants done then.  So that is a thread
 *   with a stack as usual, the first thread's signal mask, and the program's table of descriptors.
 * - The first thread may be cancelled, and it may be the child of one that was started to run a function, which returns.  Common
 *   to all of its ends are the destructors of its keys; exit() does not call them.
 * - A signal that ends the program, and _exit(2), leave no time for any of this.
 *
 * Tests: tests/componentctl/ends_meanwhile.t.
 */
#include <config.h>

#include "at_exit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "futex.h"
#include "our_mask.h"
#include "our_thread.h"
#include "per_thread.h"
#include "profiler.h"
#include "seccomp.h"
#include "serve.h"

#define WAIT_NS  (2 * CLOCK_NS_PER_S)
#define PAUSE_NS 2000000
#define GONE_NS  (10 * CLOCK_NS_PER_S) /* for our threads to end */
#define LOOK_NS  50000000 /* between two looks at what threads are left */
#define KEYS_AT_HAND 32   /* of glibc, in each thread */
#define OTHERS   4        /* links of the folder besides ours: ".", "..", the first thread, and who looks */

enum { ASKED, OWES, OWES_NOTHING }; /* ASKED: there is no answer */

static struct profiler_asked server;
static _Atomic uint32_t      word;
static pid_t                 of; /* the process that has a server */

/* What fn answers, on the server's thread. */
static uint32_t
ask(struct httpd_posted *at, httpd_fn *fn, int64_t until)
{
	int64_t left;

	atomic_store(&word, ASKED);
	if (profiler_ask(0, at, fn, NULL, &server))
		return ASKED;
	while (atomic_load(&word) == ASKED && (left = until - clock_ns(CLOCK_MONOTONIC)) > 0)
		futex_wait(&word, ASKED, left);
	return atomic_load(&word);
}

static void
answer(uint32_t with)
{
	atomic_store(&word, with);
	futex_wake(&word, 1);
}

static void
look(void *arg)
{
	(void)arg;
	answer(serve_ends(server.serve) ? OWES : OWES_NOTHING);
}

void
component_profiler_at_exit(void)
{
	static struct httpd_posted posted;
	int64_t                    until;
	int                        saved = errno;

	/* In this order: no system call where nobody measures, and no lock in a child. */
	if (!atomic_load(&serve_jobs) || seccomp_on() || getpid() != of || !profiler_has_jobs())
		return;
	until = clock_ns(CLOCK_MONOTONIC) + WAIT_NS;
	while (ask(&posted, look, until) == OWES && clock_ns(CLOCK_MONOTONIC) < until)
		futex_wait(&word, OWES, PAUSE_NS);
	errno = saved;
}

/* ---- the first thread ended ---- */

static pthread_key_t   of_first; /* a value in that thread alone, for its destructor */
static bool            has_key;
static _Atomic bool    is_gone; /* the first thread, and nobody waits for the last one yet */
static sigset_t        mask_of_first;

/* Its destructors may still be at work, ours was one of them.  A process has no program when its first thread has ended; that
 * takes no descriptor to see, and no number, which may be another namespace's. */
static bool
first_has_ended(void)
{
	struct stat st;

	return stat("/proc/self/exe", &st) < 0 && errno == ENOENT;
}

/* False, too, where /proc does not tell. */
static bool
none_is_left(void)
{
	unsigned    made = our_threads_made();
	struct stat st;

	if (!first_has_ended())
		return false;
	/* One of ours that began between the two looks would stand for one of the program's. */
	return our_threads_named() == made && stat("/proc/self/task", &st) == 0 && st.st_nlink == OTHERS + our_thread_count() &&
	       our_threads_made() == made;
}

/* The last thread of the process. */
static void *
wait_for_the_last(void *arg)
{
	struct timespec pause = clock_timespec(LOOK_NS);
	int64_t         until;
	bool            gone;

	per_thread.ours = true;
	prctl(PR_SET_NAME, "component-last");
	do
		nanosleep(&pause, NULL);
	while (!none_is_left());
	component_profiler_at_exit();
	until = clock_ns(CLOCK_MONOTONIC) + GONE_NS;
	while (component_profiler_running() && !profiler_rest() && clock_ns(CLOCK_MONOTONIC) < until)
		nanosleep(&pause, NULL); /* it may be busy */
	/* One of ours that ended after this thread would be the last. */
	gone = our_thread_all_gone(GONE_NS);
	per_thread.ours = false;
	pthread_sigmask(SIG_SETMASK, &mask_of_first, NULL);
	if (!gone)
		exit(0); /* as glibc does in the last thread */
	return arg;
}

static void
filter_look(void *arg)
{
	(void)arg;
	seccomp_thread(of);
	answer(OWES_NOTHING);
}

/* This thread cannot look for itself: a filter may end the process for it. */
static bool
is_filtered(void)
{
	static struct httpd_posted posted;

	return seccomp_on() || ask(&posted, filter_look, clock_ns(CLOCK_MONOTONIC) + WAIT_NS) == ASKED || seccomp_on();
}

static void
wait_for_the_last_begin(void)
{
	bool      was = per_thread.ours;
	pthread_t thread;

	per_thread.ours = true; /* before the first allocation */
	if (pthread_create(&thread, NULL, wait_for_the_last, NULL) == 0)
		pthread_detach(thread);
	per_thread.ours = was;
}

/* While the server is being started either this thread sees that it runs, or who starts it sees that this one is gone. */
static void
first_ends(void *of_it)
{
	int saved = errno;

	(void)of_it;
	atomic_store(&is_gone, true);
	if (component_profiler_running() && atomic_exchange(&is_gone, false) && !is_filtered() && getpid() == of) {
		our_mask_block(&mask_of_first);
		wait_for_the_last_begin();
		our_mask_restore(&mask_of_first);
	}
	errno = saved;
}

void
component_profiler_first(void)
{
	has_key = pthread_key_create(&of_first, first_ends) == 0;
	if (has_key)
		pthread_setspecific(of_first, &of);
}

void
at_exit_forked(void)
{
	atomic_store(&is_gone, false);
	pthread_sigmask(SIG_SETMASK, NULL, &mask_of_first);
	/* Others are in memory that would have to be allocated first. */
	if (has_key && of_first < KEYS_AT_HAND)
		pthread_setspecific(of_first, &of);
}

void
at_exit_begin(void)
{
	of = getpid();
}

void
at_exit_began(void)
{
	if (component_profiler_running() && atomic_exchange(&is_gone, false))
		wait_for_the_last_begin();
}
