/*
 * follow_forks.c - a server in each child of the program that lives, for "componentctl run --follow-forks".
 *
 *     fork() ──▶ child: calls that wait lead here ── 20 ms ──▶ after the next of them a thread of ours ──▶ server, record
 *                allocations, too ── 50 ms ──▶ the first ── 50 ms ──▶ the next at a safe point ──▶ the same
 *
 * Most children run another program at once, and such a one is left as it is: until then there is no
 * thread and no descriptor of ours in it.  The other program has the agent in it again (preload.c).
 *
 * What a stranger would get wrong:
 * - The thread is made by the program's own, and takes memory from the program's allocator.  A deadlock there would be
 *   worse than no server.  So two kinds of calls begin one:
 *       accept(), poll(), select(), epoll_wait(), sleep()   No allocator makes them with a lock held, and hardly any
 *                                      handler.  A program may wait there with signals blocked that have handlers.
 *       malloc(), not free()           At its entry, at a safe point (safe_point.h).  glibc calls free() with a lock held
 *                                      that pthread_create() needs.
 * - read() and write() and their kin begin none: handlers make them, and so do libraries with locks of their own held,
 *   down to the one that tells malloc() of memory.  A thread that waits there and works afterwards allocates.
 * - Locks, conditions and semaphores begin none.  Allocators lock, also where the program's own functions run inside
 *   them, and these hooks cannot be switched on for one of the names alone.
 * - The slow way of malloc() is that of samples: the heap's functions are put aside until the server begins, and the
 *   thread's countdown is kept used up.  malloc() is unchanged in the parent, and in a program whose children are not
 *   followed.
 * - Who allocates may only prepare for another program, after its parent's word perhaps.  So time is counted from its first
 *   allocation.
 * - A child that gets no server asks at each of 65,536 allocations, then once in 64 KiB.
 * - The server is begun by our thread: it takes locks and some milliseconds.
 * - A child of vfork() runs in its parent's memory: it has another number, and is left alone.
 * - Under a seccomp filter of the program's a thread or a socket may be the end of the process: it is left
 *   alone, too.  In a container all are under one, which lets programs be programs (seccomp.h): how many those are is in
 *   the environment, as nobody else knows it after an exec.  one_thread.c tells of a prctl() that asks for a filter
 *   before that is made.
 * - A trace stands where we do (collect/trace/calls.c).  In a child there is none before its server.
 *
 * Not followed, besides:
 * - who makes none of these calls: it computes without malloc(), or waits in read(), waitpid(), pause(), sigwait(), semop(),
 *   for a lock, a condition or a semaphore alone
 * - by malloc(): who has a handler with SA_NODEFER; who blocks a signal that has a handler, or has blocked more signals
 *   than when it began; who has called prctl() for a filter, or to gain no privileges; and a program with an allocator
 *   that comes before ours
 *
 * Tests: tests/componentctl/follow_forks.t.
 */
#include <config.h>

#include "follow_forks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <component/duration.h>
#include <component/profiler.h>

#include "apart.h"
#include "at_exit.h"
#include "clock.h"
#include "fork.h"
#include "futex.h"
#include "hidden_frames.h"
#include "our_thread.h"
#include "proc_self.h"
#include "record.h"
#include "safe_point.h"
#include "seccomp.h"
#include "under_run.h"
#include "which_core.h"

#define LIVES_NS COMPONENT_MILLISECONDS(20) /* who waits then did not fork to run another program */
#define WORKS_NS COMPONENT_MILLISECONDS(50) /* who allocates then, and again so long afterwards, did not either */
#define LOOK_NS  COMPONENT_MILLISECONDS(10) /* between two looks for handlers, of 65 system calls each; then twice that ... */
#define LOOK_NS_MOST COMPONENT_SECONDS(5)
#define OFTEN    65536 /* so many allocations come here, one and all */
#define RARELY   65536 /* bytes between two that come here from then on */

static struct {
	char         id[RECORD_ID_MAX]; /* "": children are not followed */
	int64_t      app_port;
	long         parent;
	pid_t        pid;   /* of the process that waits for its server */
	int64_t      since; /* that it has been there, by the coarse monotonic clock */
	_Atomic bool waits;
	_Atomic uint32_t starts; /* the process whose server is being started; 0: none is */
	bool         is_filtered; /* the first process was so before it began */
	_Atomic bool is_confined; /* prctl() was called for a filter, or before one, by this process or its parent */

	_Atomic int64_t  next_look; /* as an age; 0: it has not allocated so far */
	_Atomic int64_t  pause;     /* between two looks */
	_Atomic unsigned asked;     /* allocations that came here */
	/* The heap's, which are there again when the server begins; NULL: there were none. */
	__typeof__(component_hooks.begin)      begin;
	__typeof__(component_hooks.reallocate) reallocate;
} follow;

static void
starts_no_more(void)
{
	atomic_store(&follow.starts, 0);
	futex_wake(&follow.starts, INT_MAX);
}

bool
follow_forks_settle(int64_t wait_ns)
{
	int64_t  until = clock_ns(CLOCK_MONOTONIC) + wait_ns, left;
	uint32_t who;

	/* A child of vfork() or of a bare clone() has its parent's words. */
	if (follow.pid == 0 || follow.pid != getpid())
		return false;
	while ((who = atomic_load(&follow.starts)) != 0 && (left = until - clock_ns(CLOCK_MONOTONIC)) > 0)
		futex_wait(&follow.starts, who, left);
	return true;
}

static void
start_server(void)
{
	struct component_profiler_options o = COMPONENT_PROFILER_OPTIONS_INIT;
	char                              address[RECORD_URL_MAX];

	if (record_socket(address, sizeof(address)))
		return;
	o.address = address;
	o.record_id = follow.id;
	o.record_port = follow.app_port;
	o.record_parent = follow.parent;
	component_profiler_start_apart(&o, NULL); /* what it says is nothing that the program would print */
}

static void *
run_start(void *arg)
{
	start_server();
	starts_no_more();
	return arg;
}

/* Hardly any signal handler makes these calls.  So their thread is not in malloc(). */
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

/* By the bare calls: a fork holds the lock of our_fd_open(), and its handlers may wait for this thread. */
static int
filters_now(void)
{
	unsigned long threads;
	int           fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
	int           filters = fd < 0 ? -1 : proc_self_count(fd, &threads);

	if (fd >= 0)
		syscall(SYS_close, fd);
	return filters;
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
	filters = follow.is_filtered ? filters_now() : -1;
	return filters >= 0 && !seccomp_by(filters);
}

static int64_t
age(void)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE) - follow.since;
}

static bool
is_time(void)
{
	return atomic_load(&follow.waits) && !our_thread_is() && !atomic_load(&follow.is_confined) && age() >= LIVES_NS &&
		getpid() == follow.pid;
}

/* In the middle of the program, in an allocation that is made at pc.  Who makes it is looked at first: the clock may be
 * somebody's who holds a lock of his own.  Until the last line there is no system call. */
static bool
is_time_at(uintptr_t pc)
{
	int64_t now, next, pause;

	if (!atomic_load(&follow.waits) || our_thread_is() || atomic_load(&follow.is_confined) || safe_point_is_inside(pc))
		return false;
	now = age();
	next = atomic_load(&follow.next_look);
	if (now < WORKS_NS || now < next)
		return false;
	if (next == 0) {
		atomic_store(&follow.next_look, now + WORKS_NS);
		return false;
	}
	pause = atomic_load(&follow.pause);
	atomic_store(&follow.next_look, now + pause);
	atomic_store(&follow.pause, pause < LOOK_NS_MOST / 2 ? 2 * pause : LOOK_NS_MOST);
	return getpid() == follow.pid && !safe_point_may_be_in_handler();
}

/* ---- allocations ---- */

static void start(void);

static void
on_memory(const struct hooks_call *c)
{
	int saved = errno;

	c->thread->left = atomic_fetch_add_explicit(&follow.asked, 1, memory_order_relaxed) < OFTEN ? -1 : RARELY;
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
	if (component_hooks.outranked || atomic_load(&follow.is_confined))
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
	component_hooks.thread()->left = -1; /* the heap draws the first gap, which is not to begin late */
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
	atomic_store(&follow.starts, (uint32_t)follow.pid);
	if (may_begin() && our_thread_start("component-fork", run_start, NULL, &thread) == 0)
		pthread_detach(thread);
	else
		starts_no_more();
	pthread_setcancelstate(was, NULL);
}

static HOOKS_FRAME long
on_call(struct hooks_wait *w)
{
	long r = ((hooks_call_fn *)component_hooks.next[w->name])(w->args[0], w->args[1], w->args[2], w->args[3],
		w->more[0], w->more[1], w->more[2]);
	int  saved = errno;

	if (may_allocate_after(w->name) && is_time())
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
	at_exit_forked();
	safe_point_mask();
	atomic_store(&follow.starts, 0); /* our parent's may have */
	atomic_store(&follow.next_look, 0);
	atomic_store(&follow.pause, LOOK_NS);
	atomic_store(&follow.asked, 0);
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
component_profiler_follow_forks(const char *id, int64_t app_port, long parent, bool is_child, char *filters)
{
	if (!HOOKS_HAVE(call) || !hooks_claim())
		return;
	component_hooks.resolve();
	safe_point_begin();
	our_thread_prepare();
	if (is_child && *filters)
		seccomp_by(atoi(filters)); /* what it has more is its own */
	else if (*filters)
		snprintf(filters, sizeof(RUN_NO_FILTERS), "%03d", filters_now());
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
