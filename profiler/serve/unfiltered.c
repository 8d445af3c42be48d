/*
 * unfiltered.c - work for a thread that the program has put under a seccomp filter.
 *
 *     the program's thread:  post ── waits on a word ─────────────────────────────> goes on
 *     the server's thread:          \── is that one filtered?  starts a thread        /
 *     "component-stop":                                            \── waits ── fn ──/
 *
 * A server is ended by some hundred system calls (timers, sockets, files to be removed), and a filter
 * may end the program for any of them: memcached's knows neither unlink(2) nor timer_delete(2).  Threads that
 * were there before are not under it, and neither is who they start.
 *
 * What a stranger would get wrong:
 * - The calling thread cannot look for itself: openat(2) and prctl(2) are on few lists.  What it makes here is
 *   fstat(2) and write(2), to wake the server's thread, futex(2) and rt_sigprocmask(2).
 * - fn may end the server, so the caller touches nothing of it once the word says RUNS, and not the
 *   server's thread but another one calls fn.
 * - A server's thread that does not come, since the program took its descriptors, is not waited for without
 *   end.  It may still come: hence a word that outlives the caller's stack.
 *
 * Tests: tests/whole/odd_threads.t, tests/whole/adopt_memcached.t.
 */
#include <config.h>

#include "unfiltered.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "clock.h"
#include "futex.h"
#include "our_thread.h"
#include "seccomp.h"
#include "thread_id.h"

#define COME_NS (6 * CLOCK_NS_PER_S) /* more than it takes to see that the descriptors are lost */

enum { ASKED, NOT_FILTERED, GIVEN_UP, RUNS, DONE };

static struct httpd_posted posted;
static _Atomic uint32_t    state;
static pid_t               caller;
static void              (*work)(void);

static void
state_set(uint32_t to)
{
	atomic_store(&state, to);
	futex_wake(&state, 1);
}

static void *
run(void *arg)
{
	(void)arg;
	work();
	state_set(DONE);
	return NULL;
}

/* On the server's thread. */
static void
look(void *arg)
{
	uint32_t  asked = ASKED;
	bool      filtered = seccomp_thread(caller);
	pthread_t thread;

	(void)arg;
	if (!atomic_compare_exchange_strong(&state, &asked, filtered ? RUNS : NOT_FILTERED))
		return;
	if (filtered && our_thread_start("component-stop", run, NULL, &thread) == 0)
		pthread_detach(thread);
	else
		state_set(NOT_FILTERED);
}

bool
unfiltered_run(struct httpd *h, void (*fn)(void))
{
	int64_t  until = clock_ns(CLOCK_MONOTONIC) + COME_NS, left;
	uint32_t now;

	if (!h || atomic_load(&state) == GIVEN_UP) /* posted may be with that server for ever */
		return false;
	caller = thread_id_self();
	work = fn;
	atomic_store(&state, ASKED);
	httpd_post_at(h, &posted, look, NULL);
	while ((now = atomic_load(&state)) == ASKED || now == RUNS) {
		left = until - clock_ns(CLOCK_MONOTONIC);
		if (now == ASKED && left <= 0)
			atomic_compare_exchange_strong(&state, &now, GIVEN_UP);
		else
			futex_wait(&state, now, now == ASKED ? left : -1);
	}
	return now == DONE;
}
