/*
 * test_limits.c - the CPU profile under the limits of a process: signals, descriptors,
 * memory, groups.  What it cannot have it does without, and says so.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "cpu/ring.h"
#include "cpu/window.h"
#include "guest.h"
#include "our_thread.h"
#include "proc_self.h"
#include "skip.h"
#include "thread_id.h"

#define USER_OF_NOBODY 61571

enum { NOT_HAD = 77 }; /* the status of a child that lacks what its test needs */

static atomic_bool stop;

static atomic_bool dear;
static atomic_int  dear_reads, later_s;

/* Of its own clock a thread of the library reads, while looks are dear, that it has taken a quarter of an hour since it read
 * it last; and the time is later than it is. */
int
clock_gettime(clockid_t clock, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, clock, ret);

	if (clock == CLOCK_THREAD_CPUTIME_ID && dear && our_thread_is())
		ret->tv_sec += 1000 * ++dear_reads;
	if (clock == CLOCK_MONOTONIC)
		ret->tv_sec += later_s;
	return r;
}

static void
in_child_or_skip(void (*run)(void), const char *why)
{
	int status = status_in_child(run);

	if (status == NOT_HAD)
		SKIP(why);
	assert_int_equal(status, 0);
}

/* The number behind such a key of /proc/self/status. */
static unsigned long
status_number(const char *key)
{
	char          line[256];
	unsigned long n = 0;
	FILE         *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			n = strtoul(line + strlen(key), NULL, 10);
	if (f)
		fclose(f);
	return n;
}

static unsigned long
signals_queued(void)
{
	return status_number("SigQ:");
}

/* Other programs of this user take places and give them back at any time: from now on the
 * queue is ours alone, if that can be had. */
static void
queue_of_our_own(void)
{
	if (unshare(CLONE_NEWUSER) < 0 && geteuid() == 0)
		CHECK(setresuid(USER_OF_NOBODY, USER_OF_NOBODY, USER_OF_NOBODY) == 0);
}

static void
limit_body(void)
{
	struct rlimit      limit = { 0, 0 };
	struct cpu_window *w;

	CHECK(setrlimit(RLIMIT_SIGPENDING, &limit) == 0);
	CHECK(cpu_window_open(&w) == -EAGAIN);
	CHECK(strstr(cpu_status(), "RLIMIT_SIGPENDING"));
	CHECK(timers_of_process() == 0);
	burn_here(20 * MS);
}

static void
no_room_in_the_signal_queue_is_said(void **state)
{
	(void)state;
	in_child(limit_body);
}

static void *
wait_for_stop(void *arg)
{
	while (!stop)
		rest_ns(10 * MS);
	return arg;
}

static void
share_body(void)
{
	enum { N = 60, ROOM = 40 };
	struct rlimit      limit;
	struct cpu_window *w;
	struct profile     p;
	pthread_t          t[N];
	int                i, armed;

	stop = false;
	queue_of_our_own();
	for (i = 0; i < N; i++)
		CHECK(pthread_create(&t[i], NULL, wait_for_stop, NULL) == 0);
	limit.rlim_cur = limit.rlim_max = signals_queued() + ROOM;
	CHECK(setrlimit(RLIMIT_SIGPENDING, &limit) == 0);
	CHECK(cpu_window_open(&w) == 0);
	armed = timers_of_process();
	CHECK(strstr(cpu_status(), "RLIMIT_SIGPENDING"));
	burn_here(100 * MS);
	CHECK(cpu_window_close(w, &p) == 0);
	if (access("/proc/self/timers", R_OK) == 0) {
		/* before Linux 5.14, and where neither can be had, others use the queue, too */
		CHECK(armed > 0 && armed <= ROOM / 2 + 5);
	}
	CHECK(strstr(p.comments, "threads not sampled: RLIMIT_SIGPENDING"));
	profile_release(&p);
	stop = true;
	for (i = 0; i < N; i++)
		pthread_join(t[i], NULL);
}

static void
half_of_what_the_signal_queue_leaves_is_left_to_the_program(void **state)
{
	(void)state;
	in_child(share_body);
}

static atomic_int let_go, step;

static void *
wait_for_number(void *arg)
{
	WAIT_FOR(stop || (intptr_t)arg < let_go);
	return NULL;
}

static void *
burn_before_and_within(void *arg)
{
	burn_here(1000 * MS);
	step = 1;
	WAIT_FOR(step == 2);
	burn_here(300 * MS); /* in the window, without a timer */
	step = 3;
	WAIT_FOR(step == 4);
	burn_here(100 * MS);
	step = 5;
	WAIT_FOR(stop);
	return arg;
}

static void
late_body(void)
{
	enum { N = 20 };
	struct rlimit      limit;
	struct cpu_window *w;
	struct profile     p;
	pthread_t          t[N + 1];

	stop = false;
	queue_of_our_own();
	for (intptr_t i = 0; i < N; i++)
		CHECK(pthread_create(&t[i], NULL, wait_for_number, (void *)i) == 0);
	CHECK(pthread_create(&t[N], NULL, burn_before_and_within, NULL) == 0); /* the last one */
	WAIT_FOR(step == 1);
	limit.rlim_cur = limit.rlim_max = signals_queued() + 2 * (N + 1);
	CHECK(setrlimit(RLIMIT_SIGPENDING, &limit) == 0);
	CHECK(cpu_window_open(&w) == 0);
	CHECK(strstr(cpu_status(), "RLIMIT_SIGPENDING"));
	step = 2;
	WAIT_FOR(step == 3);
	let_go = 5; /* their places are free */
	WAIT_FOR_S(!strstr(cpu_status(), "RLIMIT_SIGPENDING"), 30);
	CHECK(!strstr(cpu_status(), "RLIMIT_SIGPENDING"));
	step = 4;
	WAIT_FOR(step == 5);
	CHECK(cpu_window_close(w, &p) == 0);
	CHECK(burn_samples(&p, burn_here) <= 40); /* what it used before is in no window */
	CHECK(p.lost >= 25); /* what it used without a timer is told as lost */
	profile_release(&p);
	stop = true;
	for (int i = 0; i <= N; i++)
		pthread_join(t[i], NULL);
}

static void
a_thread_that_is_sampled_late_is_not_charged_with_its_past_and_hides_nothing(void **state)
{
	(void)state;
	in_child(late_body);
}

static void
a_window_that_tells_threads_apart_counts_so_many_and_no_more(void **state)
{
	struct cpu_window *w = cpu_window_new();

	(void)state;
	assert_non_null(w);
	w->by_thread = true;
	for (uint32_t tid = 1; tid <= WINDOW_COUNTS_MAX + 10; tid++)
		cpu_window_count(w, tid, 0, 0, 1);
	cpu_window_count(w, 1, 0, 0, 1); /* that is there still */
	assert_int_equal(w->periods, WINDOW_COUNTS_MAX + 1);
	assert_int_equal(w->no_room, 10);
	cpu_window_free(w);
}

static void
descriptors_body(void)
{
	struct rlimit      limit = { 3, 3 };
	struct cpu_window *w;
	struct profile     p;

	CHECK(cpu_window_open(&w) == 0);
	setrlimit(RLIMIT_NOFILE, &limit); /* what new threads there are is not seen */
	burn_here(200 * MS);
	CHECK(cpu_window_close(w, &p) == 0);
	CHECK(burn_total(&p) >= 15);
	profile_release(&p);
	CHECK(cpu_window_open(&w) < 0);
	CHECK(strstr(cpu_status(), "descriptor"));
	CHECK(timers_of_process() == 0);
}

static void
a_window_without_descriptors_goes_on_and_a_new_one_is_refused(void **state)
{
	(void)state;
	in_child(descriptors_body);
}

static void
for_a_moment_body(void)
{
	struct rlimit      before, limit;
	struct cpu_window *w;

	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	limit = (struct rlimit){ 3, before.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK(cpu_window_open(&w) < 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	CHECK(strstr(cpu_status(), "descriptor")); /* who asked is told */
	later_s = 60;
	CHECK(strcmp(cpu_status(), "") == 0);
}

static void
what_a_window_failed_for_is_told_no_more_after_a_minute(void **state)
{
	(void)state;
	in_child(for_a_moment_body);
}

static void
memory_body(void)
{
	struct rlimit      limit = { 1, 1 };
	struct cpu_window *w;

	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
	CHECK(cpu_window_open(&w) == -ENOMEM);
	CHECK(strstr(cpu_status(), "no memory"));
	CHECK(timers_of_process() == 0);
	burn_here(20 * MS);
}

static void
without_memory_there_is_no_window_and_no_harm(void **state)
{
	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("the sanitizer's allocator ends a process without memory");
#endif
	in_child(memory_body);
}

static void
locked_body(void)
{
	struct rlimit      limit = { 64 << 20, 64 << 20 };
	struct cpu_window *w;
	struct profile     p;

	setrlimit(RLIMIT_MEMLOCK, &limit);
	if (geteuid() == 0) /* whom no such limit binds */
		CHECK(setresuid(USER_OF_NOBODY, USER_OF_NOBODY, USER_OF_NOBODY) == 0);
	if (mlockall(MCL_FUTURE) < 0)
		_exit(NOT_HAD);
	CHECK(cpu_window_open(&w) == 0);
	CHECK(status_number("VmLck:") > 0); /* in KiB */
	burn_here(300 * MS);
	CHECK(cpu_window_close(w, &p) == 0);
	CHECK(burn_total(&p) + (int64_t)p.lost >= 15); /* that there are samples; how many is for others */
	profile_release(&p);
}

static void
memory_that_is_locked_is_little(void **state)
{
	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("a sanitizer's mlockall() does nothing");
#endif
	in_child_or_skip(locked_body, "memory cannot be locked here");
}

static void
groups_body(void)
{
	static gid_t       groups[4000];
	struct cpu_window *w;
	size_t             i;

	for (i = 0; i < 4000; i++)
		groups[i] = (gid_t)(100000 + i);
	if (setgroups(4000, groups) < 0)
		_exit(NOT_HAD); /* not root */
	CHECK(cpu_window_open(&w) == 0);
	cpu_window_cancel(w);
	CHECK(strcmp(cpu_status(), "") == 0);
}

static void
a_user_of_thousands_of_groups_can_be_profiled(void **state)
{
	(void)state;
	in_child_or_skip(groups_body, "groups can be chosen by root only");
}

static void
in_the_kernel_body(void)
{
	size_t             size = (size_t)256 << 20;
	struct cpu_window *w;
	struct profile     p;
	int64_t            used;
	char              *mem;
	int                i;

	/* Populating and dropping memory: long system calls that use CPU time. */
	CHECK(cpu_window_open(&w) == 0);
	used = burn_clock();
	for (i = 0; i < 3; i++) {
		mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		CHECK(mem != MAP_FAILED);
		munmap(mem, size);
	}
	used = burn_clock() - used;
	CHECK(cpu_window_close(w, &p) == 0);
	/* one that is under way, and what came after the end, may be missing */
	CHECK(burn_total(&p) + 4 >= used / (10 * MS));
	CHECK(!strstr(p.comments, "not sampled"));
	CHECK(p.lost == 0);
	profile_release(&p);
}

static void
time_in_long_system_calls_is_not_lost(void **state)
{
	(void)state;
	in_child(in_the_kernel_body);
}

static void
closed_body(void)
{
	struct cpu_window *w;
	int                i;

	for (i = 0; i < 3; i++)
		close(i);
	CHECK(cpu_window_open(&w) == 0);
	burn_here(150 * MS);
	cpu_window_cancel(w);
	for (i = 0; i < 3; i++)
		if (fcntl(i, F_GETFD) >= 0)
			_exit(2);
}

static void
standard_descriptors_that_are_closed_stay_closed(void **state)
{
	(void)state;
	in_child(closed_body);
}

/* ---- /proc of another pid namespace ---- */

static atomic_int numbered; /* as /proc does */

static void *
shut_and_named(void *arg)
{
	sigset_t all;
	char     link[64] = "";
	int      pid, tid = -1;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	pthread_setname_np(pthread_self(), "shut");
	CHECK(readlink("/proc/thread-self", link, sizeof(link) - 1) > 0);
	CHECK(sscanf(link, "%d/task/%d", &pid, &tid) == 2);
	atomic_store(&numbered, tid);
	return wait_for_stop(arg);
}

static void *
say_number(void *arg)
{
	atomic_store((atomic_int *)arg, thread_id_self());
	return wait_for_stop(arg);
}

/* Two threads, and the number that /proc has for the first is the second's own. */
static void
numbers_body(void)
{
	char       name[PROC_SELF_NAME_BYTES] = "?", number[16];
	atomic_int tid = 0;
	pthread_t  shut, other;
	int        last = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);

	stop = false;
	CHECK(pthread_create(&shut, NULL, shut_and_named, NULL) == 0);
	while (!atomic_load(&numbered))
		sched_yield();
	snprintf(number, sizeof(number), "%d", atomic_load(&numbered) - 1);
	if (last < 0 || write(last, number, strlen(number)) < 0)
		_exit(NOT_HAD);
	CHECK(pthread_create(&other, NULL, say_number, &tid) == 0);
	while (!atomic_load(&tid))
		sched_yield();
	CHECK(atomic_load(&tid) == atomic_load(&numbered));
	CHECK(strstr(proc_self_missing(), "another pid namespace"));
	CHECK(proc_self_blocked(tid) == 0);
	CHECK(proc_self_blocked_now(tid) == 0);
	CHECK(proc_self_wants(tid) == 0);
	CHECK(!proc_self_blocks(tid, SIGPROF));
	CHECK(proc_self_filters(tid) == -1);
	proc_self_name(tid, name);
	CHECK(strcmp(name, "") == 0);
	CHECK(proc_self_thread_open(tid, "stat") == -EXDEV);
	stop = true;
	pthread_join(shut, NULL);
	pthread_join(other, NULL);
}

static void
a_proc_of_another_pid_namespace_is_not_asked_about_threads(void **state)
{
	int   status;
	pid_t outer, inner;

	(void)state;
	outer = fork();
	assert_true(outer >= 0);
	if (outer == 0) {
		if (unshare(CLONE_NEWPID) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
			_exit(NOT_HAD);
		inner = fork();
		if (inner == 0) {
			alarm(600);
			numbers_body();
			_exit(0);
		}
		if (inner < 0 || waitpid(inner, &status, 0) != inner || !WIFEXITED(status))
			_exit(1);
		_exit(WEXITSTATUS(status));
	}
	assert_int_equal(waitpid(outer, &status, 0), outer);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NOT_HAD)
		SKIP("no pid namespace in which numbers can be chosen is to be had here");
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- looks that are dear ---- */

static void
dear_body(void)
{
	uintptr_t          pc = (uintptr_t)dear_body;
	struct cpu_sample  s = { .weight = 1, .pcs = &pc, .count = 1 };
	struct cpu_window *w;

	dear = true;
	CHECK(cpu_window_open(&w) == 0);
	WAIT_FOR(dear_reads >= 2); /* the first look: a hundred times that much is to pass before the next */
	CHECK(cpu_ring_add(&s));
	WAIT_FOR_S(cpu_ring_used() == 0, 60);
	CHECK(cpu_ring_used() == 0);
	CHECK(dear_reads == 2);
	dear = false;
	cpu_window_cancel(w);
}

static void
where_looks_are_dear_the_ring_is_emptied_all_the_same(void **state)
{
	(void)state;
	in_child(dear_body);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_room_in_the_signal_queue_is_said),
		cmocka_unit_test(half_of_what_the_signal_queue_leaves_is_left_to_the_program),
		cmocka_unit_test(a_thread_that_is_sampled_late_is_not_charged_with_its_past_and_hides_nothing),
		cmocka_unit_test(a_window_that_tells_threads_apart_counts_so_many_and_no_more),
		cmocka_unit_test(a_window_without_descriptors_goes_on_and_a_new_one_is_refused),
		cmocka_unit_test(what_a_window_failed_for_is_told_no_more_after_a_minute),
		cmocka_unit_test(without_memory_there_is_no_window_and_no_harm),
		cmocka_unit_test(memory_that_is_locked_is_little),
		cmocka_unit_test(a_user_of_thousands_of_groups_can_be_profiled),
		cmocka_unit_test(time_in_long_system_calls_is_not_lost),
		cmocka_unit_test(a_proc_of_another_pid_namespace_is_not_asked_about_threads),
		cmocka_unit_test(standard_descriptors_that_are_closed_stay_closed),
		cmocka_unit_test(where_looks_are_dear_the_ring_is_emptied_all_the_same),
	};

	if (burn_skip_all())
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
