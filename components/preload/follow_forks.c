/*
 * follow_forks.c - a server in each child of the program that lives, for "componentctl run --follow-forks".
 *
 *     fork() ──▶ child: calls that wait lead here ── 20 ms ──▶ after the next of them a thread of ours ──▶ server, record
 *                reads and allocations, too ─────── 100 ms ──▶ at the next that is at a safe point ──▶ the same
 *
 * Most children run another program at once, and such a one is left as it is: until then there is no
 * thread and no descriptor of ours in it.  The other program has the agent in it again (preload.c).
 *
 * What a stranger would get wrong:
 * - The thread is made by the program's own, and takes memory from the program's allocator.  A deadlock there would be
 *   worse than no server.  So three kinds of calls begin one:
 *       accept(), poll(), select(), epoll_wait(), sleep()   No allocator makes them with a lock held, and hardly any
 *                                      handler.  A program may wait there with signals blocked that have handlers.
 *       read(), recv(), and their kin  Handlers make them as well.  Only at a safe point (safe_point.h).
 *       malloc(), not free()           At its entry, at a safe point.  glibc calls free() with a lock held that
 *                                      pthread_create() needs.
 * - Locks, conditions and semaphores begin none.  Allocators lock, also where the program's own functions run inside
 *   them, and these hooks cannot be switched on for one of the names alone.  Who waits there and then works allocates.
 * - write() and its kin begin none: allocators that log make them with a lock held.
 * - The slow way of malloc() is that of samples: the heap's functions are put aside until the server begins, and the
 *   thread's countdown is kept used up.  So malloc() is as ever in the parent, and in who follows nobody.
 * - Who allocates may only prepare for another program, as by closing 65,536 descriptors.  So it is given more time.
 * - Reads are made in a child that waits for its parent's word to run another program: that takes more time, too.
 * - A child that gets no server asks the clock at each allocation for a second, then once in 64 KiB.
 * - The server is begun by our thread: it takes locks and some milliseconds.
 * - A child of vfork() runs in its parent's memory: it has another number, and is left alone.
 * - Under a seccomp filter of the program's a thread or a socket may be the end of the process: it is left
 *   alone, too.  In a container all are under one, which lets programs be programs (seccomp.h).  SECCOMP_MODE_STRICT
 *   allows read() and not even getpid(): one_thread.c tells of the prctl() before it.
 * - A trace stands where we do (collect/trace/calls.c).  In a child there is none before its server.
 *
 * Not followed, besides:
 * - who makes none of these calls: it computes without malloc(), or waits in waitpid(), pause(), sigwait(), semop(), for a
 *   lock, a condition or a semaphore alone, or has a read() that never returns
 * - by read() and malloc(): who has a handler with SA_NODEFER; who blocks a signal that has a handler, or has blocked more
 *   signals than when it began; who has called prctl() for a filter, or to gain no privileges; and a program with an
 *   allocator of its own that stands before ours
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
#include "safe_point.h"
#include "seccomp.h"
#include "which_core.h"

#define LIVES_NS COMPONENT_MILLISECONDS(20) /* who waits then did not fork to run another program */
#define WORKS_NS COMPONENT_MILLISECONDS(100) /* the same of who reads or allocates */
#define LOOK_NS  COMPONENT_MILLISECONDS(10) /* between two looks for handlers, of 65 system calls each */
#define OFTEN_NS COMPONENT_SECONDS(1)       /* so long each allocation comes here */
#define RARELY   65536                      /* bytes between two that come here from then on */

static struct {
	char         id[RECORD_ID_MAX]; /* "": children are not followed */
	int64_t      app_port;
	long         parent;
	pid_t        pid;   /* of the process that waits for its server */
	int64_t      since; /* that it has been there, by the coarse monotonic clock */
	_Atomic bool waits;
	bool         is_filtered; /* the first process was so before it began */
	_Atomic bool is_confined; /* prctl() was called for a filter, or before one, by this process or its parent */

	_Atomic int64_t next_look; /* as an age */
	/* The heap's, which are there again when the server begins; NULL: there were none. */
	__typeof__(component_hooks.begin)      begin;
	__typeof__(component_hooks.reallocate) reallocate;
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

/* Calls that handlers make as well. */
static bool
is_read(uint32_t name)
{
	switch (name) {
	case HOOKS_read:
	case HOOKS_readv:
	case HOOKS_recv:
	case HOOKS_recvfrom:
	case HOOKS_recvmsg:
	case HOOKS_recvmmsg:
	case HOOKS___read_chk:
	case HOOKS___recv_chk:
	case HOOKS___recvfrom_chk:
		return true;
	default:
		return false;
	}
}

static int64_t
age(void)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE) - follow.since;
}

static bool
is_time(void)
{
	return atomic_load(&follow.waits) && !our_thread_is() && age() >= LIVES_NS && getpid() == follow.pid;
}

/* In the middle of the program, in a call that is made at pc.  Until the last line there is no system call. */
static bool
is_time_at(uintptr_t pc)
{
	int64_t now;

	if (!atomic_load(&follow.waits) || our_thread_is() || atomic_load(&follow.is_confined) || component_hooks.outranked)
		return false;
	now = age();
	if (now < WORKS_NS || now < atomic_load(&follow.next_look) || safe_point_is_inside(pc))
		return false;
	atomic_store(&follow.next_look, now + LOOK_NS);
	return getpid() == follow.pid && !safe_point_may_be_in_handler();
}

/* ---- allocations ---- */

static void start(void);

static void
on_memory(const struct hooks_call *c)
{
	int saved = errno;

	c->thread->left = age() < OFTEN_NS ? -1 : RARELY;
	c->thread->rate = 0; /* the next gap is the first one again */
	if (is_time_at(c->pc))
		start();
	errno = saved;
}

static int
on_allocation(struct hooks_call *c)
{
	on_memory(c);
	return HOOKS_PASS;
}

/* The heap's is asked all the same: the old block may be a sample of the parent's. */
static int
on_reallocation(struct hooks_call *c)
{
	int64_t left;
	int     answer;

	on_memory(c);
	if (!follow.reallocate)
		return HOOKS_PASS;
	left = c->thread->left;
	c->thread->left = 0; /* the new one is no sample */
	answer = follow.reallocate(c);
	c->thread->left = left;
	return answer;
}

static void
allocations_watch(void)
{
	if (component_hooks.outranked)
		return;
	if (component_hooks.begin != on_allocation) { /* or our parent waits, too */
		follow.begin = component_hooks.begin;
		follow.reallocate = component_hooks.reallocate;
	}
	if (HOOKS_HAVE(counts))
		component_hooks.counts = 1; /* as the heap does: otherwise each free() would ask it */
	component_hooks.thread()->left = -1;
	component_hooks.thread()->rate = 0;
	__atomic_store_n(&component_hooks.reallocate, on_reallocation, __ATOMIC_RELEASE);
	__atomic_store_n(&component_hooks.begin, on_allocation, __ATOMIC_RELEASE);
	hooks_set_heap_state(HOOKS_ON);
}

/* Where there were none, ours stay until the heap has its own: another thread may be about to call them. */
static void
allocations_leave(void)
{
	if (component_hooks.begin != on_allocation)
		return;
	hooks_set_heap_state(HOOKS_OFF);
	if (!follow.begin)
		return;
	__atomic_store_n(&component_hooks.reallocate, follow.reallocate, __ATOMIC_RELEASE);
	__atomic_store_n(&component_hooks.begin, follow.begin, __ATOMIC_RELEASE);
}

/* ---- the server ---- */

static void
start(void)
{
	bool      waits = true;
	int       was;
	pthread_t thread;

	if (!atomic_compare_exchange_strong(&follow.waits, &waits, false))
		return;
	__atomic_store_n(&component_hooks.call_state, HOOKS_OFF, __ATOMIC_RELEASE);
	allocations_leave();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was); /* malloc() is no point to be cancelled at */
	if (may_begin() && our_thread_start("component-fork", run_start, NULL, &thread) == 0)
		pthread_detach(thread);
	pthread_setcancelstate(was, NULL);
}

static HOOKS_FRAME long
on_call(struct hooks_wait *w)
{
	long r = ((hooks_call_fn *)component_hooks.next[w->name])(w->args[0], w->args[1], w->args[2], w->args[3],
		w->more[0], w->more[1], w->more[2]);
	int  saved = errno;

	if (may_allocate_after(w->name) ? is_time() : is_read(w->name) && is_time_at(w->pc))
		start();
	errno = saved;
	return r;
}

/* Signal-safe. */
static void
wait_for_it(void)
{
	if (!HOOKS_HAVE(call) || !hooks_are_ours() || seccomp_on())
		return;
	safe_point_mask();
	atomic_store(&follow.next_look, 0);
	follow.pid = getpid();
	follow.since = clock_ns(CLOCK_MONOTONIC_COARSE);
	atomic_store(&follow.waits, true);
	component_hooks.call = on_call;
	__atomic_store_n(&component_hooks.call_state, HOOKS_ON, __ATOMIC_RELEASE);
	allocations_watch();
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
	safe_point_begin();
	our_thread_prepare();
	seccomp_look();
	follow.is_filtered = prctl(PR_GET_SECCOMP) != 0;
	follow.app_port = app_port;
	follow.parent = parent;
	snprintf(follow.id, sizeof(follow.id), "%s", id);
	if (is_child)
		wait_for_it();
}

void
component_profiler_confined(void)
{
	atomic_store(&follow.is_confined, true);
}
