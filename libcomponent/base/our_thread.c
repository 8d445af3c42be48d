/*
 * our_thread.c - threads of the library inside somebody else's process.
 *
 * A guest's thread must not take a signal that was meant for the daemon's, must
 * not inherit its real-time priority, and must be told apart from it in ps, in
 * gdb and by our own collectors.  All of that is settled before the thread runs:
 * the creator blocks every signal around pthread_create(), so there is no moment
 * at which the new thread could be chosen for one, and raises the mark of ours on
 * itself, so that the hooks see neither the call nor what it allocates.
 *
 * What a stranger would get wrong:
 * - glibc carves static TLS out of the thread's stack: a daemon with a megabyte
 *   of __thread data would leave a small stack with nothing.  Its size is added,
 *   found once by dl_iterate_phdr(), never again: that takes the loader's lock,
 *   which a daemon may hold for long in a constructor of a dlopened object.
 * - SCHED_OTHER may be refused, to a SCHED_IDLE process or by a seccomp filter, which
 *   chooses the error; then it is inherited.  Or the filter ends the process (systemd's
 *   SystemCallFilter=~@resources): who has SCHED_OTHER inherits it and asks for nothing.
 *
 * Why not pthread_attr_setsigmask_np(): glibc 2.32, we support 2.31.
 * Tests: tests/base/test_our_thread.c.
 */
#include <config.h>

#include "our_thread.h"

#include <errno.h>
#include <link.h>
#include <sched.h>
#include <stdatomic.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "fork.h"
#include "our_mask.h"
#include "our_object.h"
#include "our_table.h"
#include "our_wait.h"

#define STACK_BYTES (256 * 1024) /* the deepest own use is libevent and inflate: below 64 KiB */

#define ENDED_MAX   256 /* of them are remembered: a trace of seconds has fewer requests beside it */
#define LIVE_MAX    128 /* 64 requests and some; the time of more would be taken for the daemon's */
#define PAUSE_NS    50000L

__thread int our_waits __attribute__((tls_model("initial-exec")));
__thread struct per_thread per_thread __attribute__((tls_model("initial-exec")));
static _Atomic unsigned made, named;

/* Whose time it is: an id, or 0. */
static _Atomic pid_t    live[LIVE_MAX];
static _Atomic unsigned live_used; /* places that have ever been taken: mostly few */
static _Atomic unsigned live_count;
static _Atomic int64_t  ended_ns;
static _Atomic pid_t    ended[ENDED_MAX];
static _Atomic unsigned ends; /* odd: one is being noted */

struct start {
	void *(*run)(void *);
	void *arg;
	char  name[16]; /* the kernel's limit, NUL included */
	bool  own_table;
};

static int
add_tls(struct dl_phdr_info *info, size_t size, void *arg)
{
	size_t *sum = arg;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			*sum += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
	return 0;
}

/* Racing first calls compute the same number. */
static size_t
stack_bytes(void)
{
	static size_t once;
	size_t        bytes = __atomic_load_n(&once, __ATOMIC_RELAXED);
	long          page = sysconf(_SC_PAGESIZE), least = sysconf(_SC_THREAD_STACK_MIN);

	if (bytes > 0)
		return bytes;
	dl_iterate_phdr(add_tls, &bytes);
	bytes += STACK_BYTES + (least > 0 ? (size_t)least : 0);
	bytes = (bytes + (size_t)page - 1) / (size_t)page * (size_t)page;
	__atomic_store_n(&once, bytes, __ATOMIC_RELAXED);
	return bytes;
}

void
our_thread_prepare(void)
{
	stack_bytes();
}

static _Atomic pid_t *
live_add(void)
{
	pid_t    tid = (pid_t)syscall(SYS_gettid), none;
	unsigned used;

	for (unsigned i = 0; i < LIVE_MAX; i++) {
		none = 0;
		if (!atomic_compare_exchange_strong(&live[i], &none, tid))
			continue;
		used = atomic_load(&live_used);
		while (used <= i && !atomic_compare_exchange_weak(&live_used, &used, i + 1))
			;
		atomic_fetch_add(&live_count, 1);
		return &live[i];
	}
	return NULL;
}

/* From one to the other at once, for who reads both. */
static void
live_end(_Atomic pid_t *place)
{
	unsigned turn;

	if (!place)
		return;
	do {
		turn = atomic_load(&ends) & ~1U;
	} while (!atomic_compare_exchange_weak(&ends, &turn, turn + 1));
	atomic_fetch_add(&ended_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID));
	atomic_store(&ended[turn / 2 % ENDED_MAX], *place);
	atomic_store(place, 0);
	atomic_store(&ends, turn + 2);
	atomic_fetch_sub(&live_count, 1);
}

bool
our_thread_has(pid_t tid)
{
	unsigned used = atomic_load(&live_used);

	for (unsigned i = 0; i < used; i++)
		if (atomic_load_explicit(&live[i], memory_order_relaxed) == tid)
			return true;
	return false;
}

bool
our_thread_had(pid_t tid)
{
	if (our_thread_has(tid))
		return true;
	for (int i = 0; i < ENDED_MAX; i++)
		if (atomic_load_explicit(&ended[i], memory_order_relaxed) == tid)
			return true;
	return false;
}

unsigned
our_thread_count(void)
{
	return atomic_load(&live_count);
}

size_t
our_thread_ids(pid_t *ret, size_t max)
{
	unsigned used = atomic_load(&live_used);
	size_t   n = 0;
	pid_t    tid;

	for (unsigned i = 0; i < used && n < max; i++)
		if ((tid = atomic_load(&live[i])) != 0)
			ret[n++] = tid;
	return n;
}

static bool
wait_while(bool (*holds)(void), int64_t wait_ns)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int64_t               until = clock_ns(CLOCK_MONOTONIC) + wait_ns;

	while (holds()) {
		if (clock_ns(CLOCK_MONOTONIC) > until)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

static bool
one_has_not_begun(void)
{
	return named != made;
}

bool
our_thread_all_here(int64_t wait_ns)
{
	return wait_while(one_has_not_begun, wait_ns);
}

static bool
one_is_live(void)
{
	return atomic_load(&live_count) > 0;
}

bool
our_thread_all_ended(int64_t wait_ns)
{
	return wait_while(one_is_live, wait_ns);
}

static bool
one_is_there(void)
{
	pid_t pid = getpid(), tid;

	if (one_is_live())
		return true;
	for (int i = 0; i < ENDED_MAX; i++)
		if ((tid = atomic_load(&ended[i])) != 0 && syscall(SYS_tgkill, pid, tid, 0) == 0)
			return true;
	return false;
}

bool
our_thread_all_gone(int64_t wait_ns)
{
	return wait_while(one_is_there, wait_ns);
}

int64_t
our_thread_cpu_ns(void)
{
	int64_t  sum = 0, ns;
	unsigned turn;
	pid_t    tid;

	/* An end is a few instructions: should it never end, the sum is off by a little. */
	for (int tries = 0; tries < 1000; tries++) {
		turn = atomic_load(&ends);
		sum = atomic_load(&ended_ns);
		for (int i = 0; i < LIVE_MAX; i++)
			if ((tid = atomic_load(&live[i])) != 0)
				sum += (ns = thread_clock_ns(tid)) > 0 ? ns : 0;
		if (!(turn & 1) && turn == atomic_load(&ends))
			break;
	}
	return sum;
}

static void
fork_child(void)
{
	for (int i = 0; i < LIVE_MAX; i++)
		atomic_store(&live[i], 0);
	for (int i = 0; i < ENDED_MAX; i++)
		atomic_store(&ended[i], 0);
	atomic_store(&live_count, 0);
	atomic_store(&named, made);
	atomic_store(&ended_ns, 0);
	atomic_store(&ends, 0);
}

FORK_SLOT(FORK_THREAD_CLOCK, NULL, NULL, fork_child);

static __attribute__((section("component_frames"))) void * /* left out of stacks: hooks/hidden_frames.h */
begin(void *arg)
{
	struct start *s = arg;
	void         *(*run)(void *) = s->run;
	void         *run_arg = s->arg, *result;
	_Atomic pid_t *place = live_add();

	per_thread.ours = true;
	our_table_inherit(s->own_table);
	prctl(PR_SET_NAME, s->name, 0, 0, 0);
	named++;
	free(s);
	result = run(run_arg);
	live_end(place);
	return result;
}

static int
create(struct start *s, pthread_t *ret)
{
	struct sched_param param = { .sched_priority = 0 };
	pthread_attr_t     attr;
	int                r;

	our_object_keep();
	r = pthread_attr_init(&attr);
	if (r)
		return -r;
	r = pthread_attr_setstacksize(&attr, stack_bytes());
	if (r)
		goto out;
	if (sched_getscheduler(0) != SCHED_OTHER) {
		pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
		pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
		pthread_attr_setschedparam(&attr, &param);
	}
	r = pthread_create(ret, &attr, begin, s);
	if (r && r != EAGAIN && r != ENOMEM) { /* a filter may say anything */
		pthread_attr_setinheritsched(&attr, PTHREAD_INHERIT_SCHED);
		r = pthread_create(ret, &attr, begin, s);
	}
out:
	pthread_attr_destroy(&attr);
	return -r;
}

int
our_thread_start(const char *name, void *(*run)(void *), void *arg, pthread_t *ret)
{
	struct start *s;
	sigset_t      before;
	pthread_t     thread;
	bool          was = per_thread.ours;
	int           r;

	if (strlen(name) >= sizeof(s->name))
		return -EINVAL;
	our_mask_block(&before);
	per_thread.ours = true; /* before the first allocation, until after the last free */
	r = -ENOMEM;
	s = calloc(1, sizeof(*s));
	if (!s)
		goto out;
	s->run = run;
	s->arg = arg;
	s->own_table = our_table_is_own();
	strcpy(s->name, name);
	made++; /* a thread begins with its creator's name, and may wait long for a CPU to change it */
	r = create(s, &thread);
	if (r) {
		made--;
		free(s);
		goto out;
	}
	*ret = thread;
out:
	per_thread.ours = was;
	our_mask_restore(&before);
	return r;
}

unsigned
our_threads_made(void)
{
	return made;
}

unsigned
our_threads_named(void)
{
	return named;
}
