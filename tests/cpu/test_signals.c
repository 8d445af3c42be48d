/*
 * test_signals.c - which signal the CPU profile takes, and threads that block it or that
 * libc knows nothing of.  Whatever the program does, the profile says what is missing.
 */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "guest.h"
#include "skip.h"
#include "dump/threads.h"

/* ---- signals ---- */

static void
default_body(void)
{
	struct cpu_window *w;
	struct profile     p;
	int64_t            used = -clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	CHECK(cpu_window_open(&w) == 0);
	raise(SIGPROF); /* not from our timers: ignored, and not a sample */
	kill(getpid(), SIGPROF);
	burn_here(200 * MS);
	CHECK(cpu_window_close(w, &p) == 0);
	used += clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	CHECK(strstr(p.comments, "signal: SIGPROF\n"));
	fprintf(stderr, "# %lld samples in %lld ms\n", (long long)burn_total(&p), (long long)(used / MS));
	CHECK(burn_total(&p) >= 15 && burn_total(&p) <= used / (10 * MS) + 5);
	profile_release(&p);
	raise(SIGPROF); /* the handler is still there */
}

static void
sigprof_is_used_when_nobody_has_it_and_never_kills(void **state)
{
	(void)state;
	in_child(default_body);
}

static atomic_int theirs;

static void
on_theirs(int number)
{
	(void)number;
	theirs++;
}

static void
owned_body(void)
{
	struct itimerval   often = { { 0, 10000 }, { 0, 10000 } }, never = { 0 };
	struct cpu_window *w;
	struct profile     p;

	signal(SIGPROF, on_theirs);
	setitimer(ITIMER_PROF, &often, NULL);
	CHECK(cpu_window_open(&w) == 0);
	/* Its own profiler goes on; on a busy machine its ticks are few. */
	do
		burn_here(300 * MS);
	while (theirs < 15);
	CHECK(cpu_window_close(w, &p) == 0);
	setitimer(ITIMER_PROF, &never, NULL);
	CHECK(strstr(p.comments, "signal: SIGRTMAX"));
	CHECK(burn_samples(&p, burn_here) >= 24);
	CHECK(signal(SIGPROF, SIG_DFL) == on_theirs);
	profile_release(&p);
}

static void
a_sigprof_that_is_the_programs_stays_the_programs(void **state)
{
	(void)state;
	in_child(owned_body);
}

/* One of the program's could leave ours by siglongjmp(), and glibc's unwinds a thread that is
 * cancelled: sigfillset() leaves out that one. */
static void
masked_body(void)
{
	struct cpu_window *w;
	struct sigaction   now;
	int                i;

	CHECK(cpu_window_open(&w) == 0);
	CHECK(sigaction(SIGPROF, NULL, &now) == 0);
	for (i = 1; i <= SIGRTMAX; i++)
		CHECK(i == SIGKILL || i == SIGSTOP || sigismember(&now.sa_mask, i) == 1);
	cpu_window_cancel(w);
}

static void
no_handler_of_the_program_interrupts_the_profilers(void **state)
{
	(void)state;
	in_child(masked_body);
}

struct reader {
	int        from;
	atomic_int tid;
	ssize_t    got;
	int        error;
};

static void *
read_a_byte(void *arg)
{
	struct reader *r = arg;
	char           byte;

	r->tid = gettid();
	r->got = read(r->from, &byte, 1);
	r->error = errno;
	return arg;
}

/* Whether a line of a thread's status has this text. */
static bool
status_has(int tid, const char *line, const char *text)
{
	char  path[64], buf[256];
	bool  has = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	f = fopen(path, "re");
	while (f && !has && fgets(buf, sizeof(buf), f))
		has = strncmp(buf, line, strlen(line)) == 0 && strstr(buf, text);
	if (f)
		fclose(f);
	return has;
}

static void
restarted_body(void)
{
	struct cpu_window *w;
	struct reader      r = { 0 };
	pthread_t          t;
	int                pair[2], i;

	CHECK(pipe(pair) == 0);
	r.from = pair[0];
	CHECK(cpu_window_open(&w) == 0);
	CHECK(pthread_create(&t, NULL, read_a_byte, &r) == 0);
	while (!r.tid)
		sched_yield();
	for (i = 0; i < 20; i++) {
		while (!status_has(r.tid, "State:", "S (sleeping)"))
			sched_yield();
		CHECK(pthread_kill(t, SIGPROF) == 0);
		while (!status_has(r.tid, "SigPnd:", "0000000000000000"))
			sched_yield();
	}
	CHECK(write(pair[1], "x", 1) == 1);
	pthread_join(t, NULL);
	if (r.got != 1)
		fprintf(stderr, "# read: %s\n", strerror(r.error));
	CHECK(r.got == 1);
	cpu_window_cancel(w);
}

static void
a_call_that_the_signal_interrupts_is_begun_again(void **state)
{
	(void)state;
	in_child(restarted_body);
}

static void
ignored_body(void)
{
	struct cpu_window *w;
	struct profile     p;

	signal(SIGPROF, SIG_IGN);
	CHECK(cpu_window_open(&w) == 0);
	CHECK(cpu_window_close(w, &p) == 0);
	CHECK(!strstr(p.comments, "signal: SIGPROF\n"));
	CHECK(signal(SIGPROF, SIG_DFL) == SIG_IGN);
	profile_release(&p);
}

static void
an_ignored_sigprof_stays_ignored(void **state)
{
	(void)state;
	in_child(ignored_body);
}

static void
taken_body(void)
{
	struct cpu_window *w;
	struct profile     p;
	int64_t            begin;
	int                early;

	burn_here(200 * MS); /* before the window: never in it */
	begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	CHECK(cpu_window_open(&w) == 0);
	burn_here(100 * MS);
	signal(SIGPROF, on_theirs);
	do { /* until the next look, the timers hit their handler */
		early = theirs;
		burn_here(100 * MS);
	} while (theirs != early);
	burn_here(300 * MS);
	CHECK(theirs == early);
	CHECK(cpu_window_close(w, &p) == 0);
	CHECK(strstr(p.comments, "signal: SIGRTMAX"));
	CHECK(burn_samples(&p, burn_here) >= 35);
	CHECK(burn_total(&p) <= (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / (10 * MS) + 3);
	profile_release(&p);
}

static void
a_signal_taken_in_the_middle_is_left_to_the_program(void **state)
{
	(void)state;
	in_child(taken_body);
}

static void *
burn_masked(void *arg)
{
	atomic_int *step = arg;
	sigset_t    one;

	sigemptyset(&one);
	sigaddset(&one, SIGPROF);
	pthread_sigmask(SIG_BLOCK, &one, NULL);
	burn_here(800 * MS);
	*step = 1;
	WAIT_FOR(*step == 2);
	burn_here(1000 * MS);
	*step = 3;
	return NULL;
}

static void
charged_body(void)
{
	struct cpu_window *w, *other;
	struct profile     p;
	atomic_int         step = 0;
	pthread_t          t;
	int                early;

	CHECK(cpu_window_open(&w) == 0);
	CHECK(pthread_create(&t, NULL, burn_masked, &step) == 0);
	WAIT_FOR(step == 1);
	CHECK(cpu_window_open(&other) == 0);
	CHECK(cpu_window_close(other, &p) == 0); /* its time is counted as lost by now */
	profile_release(&p);
	signal(SIGPROF, on_theirs);
	do { /* until the next look, this thread's timer hits their handler */
		early = theirs;
		burn_ns(100 * MS);
	} while (theirs != early);
	step = 2;
	WAIT_FOR(step == 3);
	CHECK(cpu_window_close(w, &p) == 0);
	CHECK(burn_samples(&p, burn_here) >= 80); /* of the signal that is used now it blocks none */
	profile_release(&p);
	pthread_join(t, NULL);
}

static void
a_thread_that_blocked_the_old_signal_is_sampled_by_the_new_one(void **state)
{
	(void)state;
	in_child(charged_body);
}

static void
all_taken_body(void)
{
	struct cpu_window *w;
	int                i;

	for (i = SIGRTMIN; i <= SIGRTMAX; i++)
		signal(i, on_theirs);
	signal(SIGPROF, on_theirs);
	CHECK(cpu_window_open(&w) == -EBUSY);
	CHECK(strstr(cpu_status(), "signal"));
	signal(SIGRTMIN + 3, SIG_DFL);
	CHECK(cpu_window_open(&w) == 0);
	cpu_window_cancel(w);
}

static void
without_a_free_signal_it_says_so_and_does_nothing(void **state)
{
	(void)state;
	in_child(all_taken_body);
}

static void *
run_until(void *arg)
{
	while (*(atomic_bool *)arg)
		burn_here(10 * MS);
	return NULL;
}

/* As Go's runtime leaves it. */
static void
one_left_body(void)
{
	struct cpu_window *w;
	struct profile     p;
	struct dump        d;
	pthread_t          t;
	atomic_bool        on = true;
	int                i;

	for (i = 1; i <= SIGRTMAX; i++)
		if (i != SIGALRM && i != SIGRTMIN + 3)
			signal(i, on_theirs); /* not of all: KILL, STOP and glibc's own */
	CHECK(cpu_window_open(&w) == 0);
	pthread_create(&t, NULL, run_until, &on);
	do { /* until it had a processor in time */
		CHECK(threads_dump(&d, false) == 0);
		CHECK(d.count == 2);
		i = (int)d.signalled;
		dump_release(&d);
	} while (i == 0);
	burn_here(200 * MS);
	on = false;
	pthread_join(t, NULL);
	CHECK(cpu_window_close(w, &p) == 0);
	CHECK(burn_samples(&p, burn_here) >= 15);
	profile_release(&p);
	CHECK(!theirs);
}

static void
the_last_free_signal_is_for_profiles_and_dumps(void **state)
{
	(void)state;
	in_child(one_left_body);
}

/* ---- threads that block the signal ---- */

static void
burn_blocking(void)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	burn_here(600 * MS);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void *
burn_blocking_until(void *arg)
{
	atomic_bool *done = arg;
	sigset_t     all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	burn_here(600 * MS);
	*done = true;
	WAIT_FOR(!*done);
	return NULL;
}

static void
blocking_body(void)
{
	struct cpu_window *w;
	struct profile     p;
	pthread_t          t;
	atomic_bool        done = false;
	int64_t            used = -clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	CHECK(cpu_window_open(&w) == 0);
	pthread_create(&t, NULL, burn_blocking_until, &done);
	WAIT_FOR(done);
	CHECK(cpu_window_close(w, &p) == 0);
	used += clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	done = false;
	pthread_join(t, NULL);
	CHECK(strstr(p.comments, "\n1 threads not sampled: they block SIGPROF"));
	CHECK(strstr(p.comments, " of them are of threads that block SIGPROF\n"));
	CHECK(p.lost >= 50 && (int64_t)p.lost <= used / (10 * MS) + 10);
	CHECK(burn_pseudo(&p, STACK_PSEUDO_LOST) == (int64_t)p.lost && p.lost_told);
	profile_release(&p);
}

static atomic_uint naps;

/* In the place of libc's. */
int
nanosleep(const struct timespec *ns, struct timespec *left)
{
	atomic_fetch_add(&naps, 1);
	errno = clock_nanosleep(CLOCK_MONOTONIC, 0, ns, left);
	return errno ? -1 : 0;
}

static pthread_mutex_t shut_until = PTHREAD_MUTEX_INITIALIZER;

/* As the kernel makes io_uring's: even glibc's signals are blocked. */
static void *
burn_shut(void *arg)
{
	uint64_t all = ~(uint64_t)0;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
	burn_here(300 * MS);
	*(atomic_bool *)arg = true;
	pthread_mutex_lock(&shut_until);
	pthread_mutex_unlock(&shut_until);
	return NULL;
}

static void
shut_body(void)
{
	struct cpu_window *w, *other;
	struct profile     p;
	pthread_t          t;
	atomic_bool        done = false;
	unsigned           before;

	CHECK(cpu_window_open(&w) == 0);
	pthread_mutex_lock(&shut_until);
	pthread_create(&t, NULL, burn_shut, &done);
	WAIT_FOR(done);
	before = naps;
	CHECK(cpu_window_open(&other) == 0);
	CHECK(cpu_window_close(other, &p) == 0);
	CHECK(naps == before);
	CHECK(p.lost <= 10); /* that time was used before it began */
	profile_release(&p);
	CHECK(cpu_window_close(w, &p) == 0);
	CHECK(p.lost >= 25);
	CHECK(strstr(p.comments, " of them are of threads that block SIGPROF\n"));
	profile_release(&p);
	pthread_mutex_unlock(&shut_until);
	pthread_join(t, NULL);
}

static void
no_window_sleeps_for_a_thread_that_blocks_all_and_its_time_is_lost(void **state)
{
	(void)state;
	in_child(shut_body);
}

static void
unblocking_body(void)
{
	struct cpu_window *w;
	struct profile     p;
	int64_t            total, used = -clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	int                i;

	CHECK(cpu_window_open(&w) == 0);
	for (i = 0; i < 3; i++)
		burn_blocking();
	CHECK(cpu_window_close(w, &p) == 0);
	used += clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	total = burn_total(&p);
	CHECK(total >= 165 && total <= used / (10 * MS) + 15); /* nothing twice, nothing missing */
	profile_release(&p);
}

static void
time_of_threads_that_block_the_signal_is_shown_as_lost(void **state)
{
	(void)state;
	in_child(blocking_body);
}

static void
time_is_counted_once_when_a_thread_blocks_the_signal_for_a_while(void **state)
{
	(void)state;
	in_child(unblocking_body);
}

/* ---- threads that libc knows nothing of ---- */

#define BARE_STACK (256 << 10)

/* Without CLONE_SETTLS it has its maker's thread-local storage: nothing that writes there. */
BURN_FUNCTION(bare_run)
static int
bare_run(void *arg)
{
	(void)arg;
	burn_ns(300 * MS);
	return 0;
}

BURN_FUNCTION(bare_run_short)
static int
bare_run_short(void *arg)
{
	(void)arg;
	burn_ns(4 * MS);
	return 0;
}

static char       *bare_stack;
static _Atomic int bare_tid;

static void
bare_thread(int (*run)(void *))
{
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
		CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;

	assert_true(clone(run, bare_stack + BARE_STACK, flags, NULL, (void *)&bare_tid, NULL, (void *)&bare_tid) > 0);
	WAIT_FOR(!bare_tid);
}

static void
threads_made_by_the_bare_system_call_are_sampled(void **state)
{
	struct cpu_window *w;
	struct profile     p;
	int64_t            used, total;
	int                i;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("a sanitizer knows its own threads only");
#endif
	bare_stack = mmap(NULL, BARE_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	used = burn_clock();
	w = window_open();
	bare_thread(bare_run);
	assert_int_equal(cpu_window_close(w, &p), 0);
	print_message("# %lld samples of 30\n", (long long)burn_samples(&p, bare_run));
	/* what it used after its last sample is in none */
	assert_in_range(burn_samples(&p, bare_run), 15, burn_most(used));
	profile_release(&p);

	/* Most of these are gone before anybody can see them. */
	used = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	w = window_open();
	for (i = 0; i < 75; i++)
		bare_thread(bare_run_short);
	assert_int_equal(cpu_window_close(w, &p), 0);
	used = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - used) / (10 * MS);
	total = burn_total(&p);
	munmap(bare_stack, BARE_STACK);
	print_message("# %lld samples, %lld of them lost, in %lld periods\n", (long long)total, (long long)p.lost, (long long)used);
	assert_non_null(strstr(p.comments, " of them are of threads that were beginning or ending, or lived too short to be seen\n"));
	assert_in_range(total + 6, used, used + 12);
	profile_release(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sigprof_is_used_when_nobody_has_it_and_never_kills),
		cmocka_unit_test(a_sigprof_that_is_the_programs_stays_the_programs),
		cmocka_unit_test(no_handler_of_the_program_interrupts_the_profilers),
		cmocka_unit_test(a_call_that_the_signal_interrupts_is_begun_again),
		cmocka_unit_test(an_ignored_sigprof_stays_ignored),
		cmocka_unit_test(a_signal_taken_in_the_middle_is_left_to_the_program),
		cmocka_unit_test(a_thread_that_blocked_the_old_signal_is_sampled_by_the_new_one),
		cmocka_unit_test(without_a_free_signal_it_says_so_and_does_nothing),
		cmocka_unit_test(the_last_free_signal_is_for_profiles_and_dumps),
		cmocka_unit_test(time_of_threads_that_block_the_signal_is_shown_as_lost),
		cmocka_unit_test(time_is_counted_once_when_a_thread_blocks_the_signal_for_a_while),
		cmocka_unit_test(no_window_sleeps_for_a_thread_that_blocks_all_and_its_time_is_lost),
		cmocka_unit_test(threads_made_by_the_bare_system_call_are_sampled),
	};

	if (burn_skip_all())
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
