/*
 * follow_forks.c - a server in each child of the program that lives, for "componentctl run --follow-forks".
 *
 *     fork() ──▶ child: calls that wait lead here ── 20 ms ──▶ after the next of them a thread of ours ──▶ server, record
 *
 * Most children run another program at once, and such a one is left as it is: until then there is no
 * thread and no descriptor of ours in it.  The other program has the agent in it again (preload.c).
 *
 * What a stranger would get wrong:
 * - The thread is made by the program's own, and takes memory from the program's allocator.  So it is made
 *   after calls alone that no allocator makes with a lock held, and that hardly any signal handler makes: not read()
 *   and write().
 * - The server is begun by our thread: it takes locks and some milliseconds.
 * - A child of vfork() runs in its parent's memory: it has another number, and is left alone.
 * - Under a seccomp filter of the program's a thread or a socket may be the end of the process: it is left
 *   alone, too.  In a container all are under one, which lets programs be programs (seccomp.h).
 * - A trace stands where we do (collect/trace/calls.c).  In a child there is none before its server.
 *
 * Tests: tests/componentctl/follow_forks.t.
 */
#include <config.h>

#include "follow_forks.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <component/duration.h>
#include <component/profiler.h>

#include "apart.h"
#include "clock.h"
#include "fork.h"
#include "hidden_frames.h"
#include "our_thread.h"
#include "proc_self.h"
#include "record.h"
#include "seccomp.h"
#include "which_core.h"

#define LIVES_NS COMPONENT_MILLISECONDS(20) /* who is there then did not fork to run another program */

static struct {
	char         id[RECORD_ID_MAX]; /* "": children are not followed */
	int64_t      app_port;
	long         parent;
	pid_t        pid;   /* of the process that waits for its server */
	int64_t      since; /* that it has been there, by the coarse monotonic clock */
	_Atomic bool waits;
	bool         is_filtered; /* the first process was so before it began */
} follow;

static void *
run_start(void *arg)
{
	struct component_profiler_options o = COMPONENT_PROFILER_OPTIONS_INIT;
	char                              address[RECORD_URL_MAX];

	(void)arg;
	if (record_socket(address, sizeof(address)))
		return NULL;
	o.address = address;
	o.record_id = follow.id;
	o.record_port = follow.app_port;
	o.record_parent = follow.parent;
	component_profiler_start_apart(&o, NULL); /* what it says is nothing that the program would print */
	return NULL;
}

/* Calls that hardly any signal handler makes, as its thread may be in malloc(). */
static bool
may_allocate_after(uint32_t name)
{
	switch (name) {
	case HOOKS_accept:
	case HOOKS_accept4:
	case HOOKS_poll:
	case HOOKS_ppoll:
	case HOOKS___poll_chk:
	case HOOKS___ppoll_chk:
	case HOOKS_select:
	case HOOKS_pselect:
	case HOOKS_epoll_wait:
	case HOOKS_epoll_pwait:
	case HOOKS_nanosleep:
	case HOOKS_clock_nanosleep:
	case HOOKS_usleep:
	case HOOKS_sleep:
		return true;
	default:
		return false;
	}
}

/* Is this thread under no filter, or under those alone that the first process began with?  No filter goes
 * again, so this is asked once. */
static bool
may_begin(void)
{
	int filters;

	if (seccomp_on())
		return false;
	if (prctl(PR_GET_SECCOMP) == 0)
		return true;
	filters = follow.is_filtered ? proc_self_filters(getpid()) : -1;
	return filters >= 0 && !seccomp_by(filters);
}

static bool
is_time(uint32_t name)
{
	return may_allocate_after(name) && atomic_load(&follow.waits) && !our_thread_is() &&
	       clock_ns(CLOCK_MONOTONIC_COARSE) - follow.since >= LIVES_NS && getpid() == follow.pid;
}

static void
start(void)
{
	bool      waits = true;
	pthread_t thread;

	if (!atomic_compare_exchange_strong(&follow.waits, &waits, false))
		return;
	__atomic_store_n(&component_hooks.call_state, HOOKS_OFF, __ATOMIC_RELEASE);
	if (may_begin() && our_thread_start("component-fork", run_start, NULL, &thread) == 0)
		pthread_detach(thread);
}

static HOOKS_FRAME long
on_call(struct hooks_wait *w)
{
	long r = ((hooks_call_fn *)component_hooks.next[w->name])(w->args[0], w->args[1], w->args[2], w->args[3],
		w->more[0], w->more[1], w->more[2]);
	int  saved = errno;

	if (is_time(w->name))
		start();
	errno = saved;
	return r;
}

/* Signal-safe. */
static void
wait_for_it(void)
{
	if (!HOOKS_HAVE(call) || !hooks_are_ours())
		return;
	follow.pid = getpid();
	follow.since = clock_ns(CLOCK_MONOTONIC_COARSE);
	atomic_store(&follow.waits, true);
	component_hooks.call = on_call;
	__atomic_store_n(&component_hooks.call_state, HOOKS_ON, __ATOMIC_RELEASE);
}

static void
fork_child(void)
{
	if (*follow.id)
		wait_for_it();
}

FORK_SLOT(FORK_FOLLOW, NULL, NULL, fork_child);

void
component_profiler_follow_forks(const char *id, int64_t app_port, long parent, bool is_child)
{
	if (!HOOKS_HAVE(call) || !hooks_claim())
		return;
	component_hooks.resolve();
	seccomp_look();
	follow.is_filtered = prctl(PR_GET_SECCOMP) != 0;
	follow.app_port = app_port;
	follow.parent = parent;
	snprintf(follow.id, sizeof(follow.id), "%s", id);
	if (is_child)
		wait_for_it();
}
