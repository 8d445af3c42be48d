/*
 * test_cpu_guest.c - the CPU profile as a guest: signals, forks, limits, odd
 * stacks.  Whatever the program does, it lives on and the profile says what is
 * missing.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "cpu.h"
#include "cpu_burn.h"
#include "skip.h"
#include "unwind.h"

#define MS 1000000LL

BURN_FUNCTION(burn_here)
static void
burn_here(int64_t ns)
{
	burn_ns(ns);
	__asm__ volatile("" ::: "memory");
}

static struct cpu_window *
window_open(void)
{
	struct cpu_window *w = NULL;

	assert_int_equal(cpu_window_open(&w), 0);
	return w;
}

static int64_t
window_close_here(struct cpu_window *w)
{
	struct profile p;
	int64_t        seen;

	assert_int_equal(cpu_window_close(w, &p), 0);
	seen = burn_samples(&p, burn_here);
	profile_release(&p);
	return seen;
}

/*
 * Runs in a child: handlers and limits of one test are not those of the next.
 * A failed check ends it with the line's number.
 */
#define CHECK(condition)                                                             \
	do {                                                                         \
		if (!(condition)) {                                                  \
			fprintf(stderr, "# line %d: %s\n", __LINE__, #condition);    \
			_exit(1);                                                    \
		}                                                                    \
	} while (0)

static void
in_child(void (*run)(void))
{
	int   status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(60);
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- signals ---- */

static void
default_body(void)
{
	struct cpu_window *w;
	struct profile     p;

	CHECK(cpu_window_open(&w) == 0);
	raise(SIGPROF); /* not from our timers: ignored, and not a sample */
	kill(getpid(), SIGPROF);
	burn_here(200 * MS);
	CHECK(cpu_window_close(w, &p) == 0);
	CHECK(strstr(p.comments, "signal: SIGPROF\n"));
	CHECK(burn_total(&p) >= 15 && burn_total(&p) <= 25);
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
	begin = burn_clock_ns(CLOCK_THREAD_CPUTIME_ID);
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
	CHECK(burn_total(&p) <= (burn_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / (10 * MS) + 3);
	profile_release(&p);
}

static void
a_signal_taken_in_the_middle_is_left_to_the_program(void **state)
{
	(void)state;
	in_child(taken_body);
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
	while (*done)
		poll(NULL, 0, 5);
	return NULL;
}

static void
blocking_body(void)
{
	struct cpu_window *w;
	struct profile     p;
	pthread_t          t;
	atomic_bool        done = false;

	CHECK(cpu_window_open(&w) == 0);
	pthread_create(&t, NULL, burn_blocking_until, &done);
	while (!done)
		poll(NULL, 0, 5);
	CHECK(cpu_window_close(w, &p) == 0);
	done = false;
	pthread_join(t, NULL);
	CHECK(strstr(p.comments, "\n1 threads not sampled: they block SIGPROF"));
	CHECK(p.lost >= 50 && p.lost <= 70);
	CHECK(burn_pseudo(&p, STACK_PSEUDO_LOST) == (int64_t)p.lost);
	profile_release(&p);
}

static void
unblocking_body(void)
{
	struct cpu_window *w;
	struct profile     p;
	int64_t            total;
	int                i;

	CHECK(cpu_window_open(&w) == 0);
	for (i = 0; i < 3; i++)
		burn_blocking();
	CHECK(cpu_window_close(w, &p) == 0);
	total = burn_total(&p);
	CHECK(total >= 165 && total <= 195); /* nothing twice, nothing missing */
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
	while (bare_tid)
		poll(NULL, 0, 1);
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
	w = window_open();
	bare_thread(bare_run);
	assert_int_equal(cpu_window_close(w, &p), 0);
	print_message("# %lld samples of 30\n", (long long)burn_samples(&p, bare_run));
	/* what it used after its last sample is in none */
	assert_in_range(burn_samples(&p, bare_run), 15, 33);
	profile_release(&p);

	/* Most of these are gone before anybody can see them. */
	used = burn_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	w = window_open();
	for (i = 0; i < 75; i++)
		bare_thread(bare_run_short);
	assert_int_equal(cpu_window_close(w, &p), 0);
	used = (burn_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - used) / (10 * MS);
	total = burn_total(&p);
	munmap(bare_stack, BARE_STACK);
	print_message("# %lld samples, %lld of them lost, in %lld periods\n", (long long)total, (long long)p.lost, (long long)used);
	assert_non_null(strstr(p.comments, " of them are of threads that lived too short to be seen\n"));
	assert_in_range(total + 6, used, used + 12);
	profile_release(&p);
}

/* ---- the interrupted code ---- */

static void
errno_is_kept_in_the_interrupted_code(void **state)
{
	struct cpu_window *w = window_open();
	int64_t            end = burn_clock_ns(CLOCK_THREAD_CPUTIME_ID) + 300 * MS;
	volatile unsigned  spin, wrong = 0;

	(void)state;
	while (burn_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
		errno = 12345;
		for (spin = 0; spin < 200000; spin++)
			;
		wrong += errno != 12345;
	}
	cpu_window_cancel(w);
	assert_int_equal(wrong, 0);
}

static atomic_int interrupted;

static void *
sleeper(void *arg)
{
	int i;

	for (i = 0; i < 10; i++)
		if (poll(NULL, 0, 30) < 0 && errno == EINTR)
			interrupted++;
	return arg;
}

static void
sleeping_threads_are_left_alone(void **state)
{
	struct cpu_window *w = window_open();
	pthread_t          t[8];
	int                i;

	(void)state;
	for (i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, sleeper, NULL);
	burn_here(200 * MS);
	for (i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	cpu_window_cancel(w);
	assert_int_equal(interrupted, 0);
}

static void *
on_an_alternate_stack(void *arg)
{
	stack_t alternate = { .ss_sp = malloc(32768), .ss_size = 32768 }, off = { .ss_flags = SS_DISABLE };

	sigaltstack(&alternate, NULL);
	burn_here(300 * MS);
	sigaltstack(&off, NULL);
	free(alternate.ss_sp);
	return arg;
}

static void
threads_with_an_alternate_signal_stack_are_sampled(void **state)
{
	struct cpu_window *w = window_open();
	pthread_t          t;

	(void)state;
	pthread_create(&t, NULL, on_an_alternate_stack, NULL);
	pthread_join(t, NULL);
	assert_in_range(window_close_here(w), 20, 40);
}

/* Compilers that instrument, or do not optimize, may use more. */
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HANDLER_STACK_BYTES_MAX 16384
#else
#define HANDLER_STACK_BYTES_MAX 2048
#endif
#define ALTERNATE_BYTES         65536

static void
burn_deep(unsigned n)
{
	if (n > 0)
		burn_deep(n - 1);
	else
		burn_ns(200 * MS);
	__asm__ volatile("" ::: "memory");
}

static void
on_nothing(int number)
{
	(void)number;
}

/* How much of a painted alternate stack is not as it was: with a handler that does
 * nothing, or with ours. */
static size_t
stack_used(bool ours, enum unwind_mode mode)
{
	unsigned char     *mem = malloc(ALTERNATE_BYTES);
	stack_t            alternate = { .ss_sp = mem, .ss_size = ALTERNATE_BYTES }, old;
	struct sigaction   act = { .sa_handler = on_nothing, .sa_flags = SA_ONSTACK };
	struct cpu_window *w;
	size_t             i = 0;

	memset(mem, 0x5a, ALTERNATE_BYTES);
	assert_int_equal(sigaltstack(&alternate, &old), 0);
	if (ours) {
		assert_int_equal(unwind_start(mode), 0);
		w = window_open();
		burn_deep(200);
		cpu_window_cancel(w);
		unwind_stop();
	} else {
		sigaction(SIGUSR1, &act, NULL);
		raise(SIGUSR1);
	}
	assert_int_equal(sigaltstack(&old, NULL), 0);
	while (i < ALTERNATE_BYTES && mem[i] == 0x5a)
		i++;
	free(mem);
	return ALTERNATE_BYTES - i;
}

static void
a_handler_uses_little_stack(void **state)
{
	size_t kernel, used;

	(void)state;
	kernel = stack_used(false, UNWIND_AUTO);
	used = stack_used(true, UNWIND_FRAME_POINTER);
	print_message("# %zu bytes by frame pointers\n", used - kernel);
	assert_in_range(used, kernel + 1024, kernel + HANDLER_STACK_BYTES_MAX);
	used = stack_used(true, UNWIND_AUTO);
	print_message("# %zu bytes by tables\n", used - kernel);
	assert_in_range(used, kernel + 1024, kernel + HANDLER_STACK_BYTES_MAX);
}

#if defined(__x86_64__)
/* Spins with its frame pointer register set to something else. */
void spin_with_rbp(uintptr_t rbp, uint64_t rounds);
__asm__(".text\n"
	".globl spin_with_rbp\n"
	".type spin_with_rbp,@function\n"
	"spin_with_rbp:\n"
	"	push %rbp\n"
	"	mov %rdi,%rbp\n"
	"1:	dec %rsi\n"
	"	jnz 1b\n"
	"	pop %rbp\n"
	"	ret\n"
	".size spin_with_rbp,.-spin_with_rbp\n");

static void
registers_that_hold_no_frame_pointer_are_survived(void **state)
{
	char              *mem = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t          here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t          values[] = { 0,
					1,
					8,
					4095,
					UINTPTR_MAX,
					UINTPTR_MAX - 7,
					(uintptr_t)1 << 47,
					(uintptr_t)0xffff800000000000,
					(uintptr_t)mem,
					(uintptr_t)mem + 4096,
					here + 3,
					here + (1 << 20) - 8,
					here - 64,
					here + 65536 * 16,
					(uintptr_t)&values,
					(uintptr_t)registers_that_hold_no_frame_pointer_are_survived };
	struct cpu_window *w = window_open();
	struct profile     p;
	size_t             i;
	int64_t            end;

	(void)state;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		for (end = burn_clock_ns(CLOCK_THREAD_CPUTIME_ID) + 40 * MS;
		     burn_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end;)
			spin_with_rbp(values[i], 1000000);
	assert_int_equal(cpu_window_close(w, &p), 0);
	munmap(mem, 3 * 4096);
	assert_true(burn_total(&p) >= 50);
	assert_true(p.truncated >= 20); /* most of these leave the leaf alone */
	profile_release(&p);
}
#endif

static void
on_alarm(int number)
{
	void *p = malloc(1000);

	(void)number;
	burn_ns(MS);
	free(p);
	theirs++;
}

static void
handlers_body(void)
{
	struct sigaction   act = { .sa_handler = on_alarm };
	struct itimerval   often = { { 0, 3000 }, { 0, 3000 } }, never = { 0 };
	struct cpu_window *w;
	struct profile     p;

	sigaction(SIGALRM, &act, NULL);
	CHECK(cpu_window_open(&w) == 0);
	setitimer(ITIMER_REAL, &often, NULL);
	burn_here(500 * MS);
	setitimer(ITIMER_REAL, &never, NULL);
	CHECK(cpu_window_close(w, &p) == 0);
	CHECK(theirs > 10);
	CHECK(burn_total(&p) >= 40);
	profile_release(&p);
}

static void
handlers_of_the_program_that_work_and_allocate_are_sampled_too(void **state)
{
	(void)state;
	in_child(handlers_body);
}

/* ---- fork ---- */

static int
timers_of_process(void)
{
	char  line[256];
	int   n = 0;
	FILE *f = fopen("/proc/self/timers", "r");

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		n += strncmp(line, "ID:", 3) == 0;
	fclose(f);
	return n;
}

static bool
masks_equal(const sigset_t *a, const sigset_t *b)
{
	int i;

	for (i = 1; i <= SIGRTMAX; i++)
		if (sigismember(a, i) != sigismember(b, i))
			return false;
	return true;
}

static void
a_child_forked_in_a_window_is_alive_and_has_no_timer(void **state)
{
	struct cpu_window *w = window_open(), *own;
	struct profile     p;
	sigset_t           before, after;
	int64_t            seen;
	int                i, status;
	pid_t              pid;

	(void)state;
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	for (i = 0; i < 20; i++) {
		burn_here(15 * MS);
		pid = fork();
		assert_true(pid >= 0);
		pthread_sigmask(SIG_BLOCK, NULL, &after);
		if (pid == 0) {
			alarm(30);
			CHECK(masks_equal(&before, &after));
			CHECK(timers_of_process() == 0);
			CHECK(stack_table_bytes() == 0);
			CHECK(strcmp(cpu_status(), "") == 0);
			raise(SIGPROF);
			do { /* until it has samples, or the alarm */
				CHECK(cpu_window_open(&own) == 0);
				burn_here(50 * MS);
				CHECK(cpu_window_close(own, &p) == 0);
				seen = burn_samples(&p, burn_here);
				profile_release(&p);
			} while (seen == 0);
			_exit(0);
		}
		assert_true(masks_equal(&before, &after));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	/* some of them in fork() itself, around which the signal is blocked */
	assert_int_equal(cpu_window_close(w, &p), 0);
	assert_true(burn_total(&p) >= 25);
	profile_release(&p);
}

static atomic_bool stop;

static void *
churn_windows(void *arg)
{
	struct cpu_window *w;

	while (!stop)
		if (cpu_window_open(&w) == 0)
			cpu_window_cancel(w);
	return arg;
}

static void
forks_while_windows_come_and_go_leave_a_working_child(void **state)
{
	struct cpu_window *own;
	pthread_t          t;
	int                i, status;
	pid_t              pid;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("the sanitizer's allocator may be locked in a child, for good");
#endif
	stop = false;
	pthread_create(&t, NULL, churn_windows, NULL);
	for (i = 0; i < 100; i++) {
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			alarm(30);
			CHECK(cpu_window_open(&own) == 0);
			cpu_window_cancel(own);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	stop = true;
	pthread_join(t, NULL);
}

/* ---- limits ---- */

static unsigned long
signals_queued(void)
{
	char          line[256];
	unsigned long n = 0;
	FILE         *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "SigQ:", 5) == 0)
			n = strtoul(line + 5, NULL, 10);
	if (f)
		fclose(f);
	return n;
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
		poll(NULL, 0, 10);
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
		/* others of this user may use the queue too */
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
	if (mlockall(MCL_FUTURE) < 0)
		_exit(0);
	CHECK(cpu_window_open(&w) == 0);
	burn_here(300 * MS);
	CHECK(cpu_window_close(w, &p) == 0);
	CHECK(burn_total(&p) + (int64_t)p.lost >= 15); /* that there are samples; how many is for others */
	profile_release(&p);
}

static void
memory_that_is_locked_is_little(void **state)
{
	(void)state;
	in_child(locked_body);
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
		_exit(0); /* not root */
	CHECK(cpu_window_open(&w) == 0);
	cpu_window_cancel(w);
	CHECK(strcmp(cpu_status(), "") == 0);
}

static void
a_user_of_thousands_of_groups_can_be_profiled(void **state)
{
	(void)state;
	in_child(groups_body);
}

static void
in_the_kernel_body(void)
{
	size_t             size = (size_t)256 << 20;
	struct cpu_window *w;
	struct profile     p;
	char              *mem;
	int                i;

	/* Populating and dropping memory: long system calls that use CPU time. */
	CHECK(cpu_window_open(&w) == 0);
	for (i = 0; i < 3; i++) {
		mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (mem != MAP_FAILED)
			munmap(mem, size);
	}
	CHECK(cpu_window_close(w, &p) == 0);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sigprof_is_used_when_nobody_has_it_and_never_kills),
		cmocka_unit_test(a_sigprof_that_is_the_programs_stays_the_programs),
		cmocka_unit_test(an_ignored_sigprof_stays_ignored),
		cmocka_unit_test(a_signal_taken_in_the_middle_is_left_to_the_program),
		cmocka_unit_test(without_a_free_signal_it_says_so_and_does_nothing),
		cmocka_unit_test(time_of_threads_that_block_the_signal_is_shown_as_lost),
		cmocka_unit_test(time_is_counted_once_when_a_thread_blocks_the_signal_for_a_while),
		cmocka_unit_test(threads_made_by_the_bare_system_call_are_sampled),
		cmocka_unit_test(errno_is_kept_in_the_interrupted_code),
		cmocka_unit_test(sleeping_threads_are_left_alone),
		cmocka_unit_test(threads_with_an_alternate_signal_stack_are_sampled),
		cmocka_unit_test(a_handler_uses_little_stack),
#if defined(__x86_64__)
		cmocka_unit_test(registers_that_hold_no_frame_pointer_are_survived),
#endif
		cmocka_unit_test(handlers_of_the_program_that_work_and_allocate_are_sampled_too),
		cmocka_unit_test(a_child_forked_in_a_window_is_alive_and_has_no_timer),
		cmocka_unit_test(forks_while_windows_come_and_go_leave_a_working_child),
		cmocka_unit_test(no_room_in_the_signal_queue_is_said),
		cmocka_unit_test(half_of_what_the_signal_queue_leaves_is_left_to_the_program),
		cmocka_unit_test(a_window_without_descriptors_goes_on_and_a_new_one_is_refused),
		cmocka_unit_test(without_memory_there_is_no_window_and_no_harm),
		cmocka_unit_test(memory_that_is_locked_is_little),
		cmocka_unit_test(a_user_of_thousands_of_groups_can_be_profiled),
		cmocka_unit_test(time_in_long_system_calls_is_not_lost),
		cmocka_unit_test(standard_descriptors_that_are_closed_stay_closed),
	};

	if (burn_skip_all())
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
