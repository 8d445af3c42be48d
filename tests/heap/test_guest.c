/*
 * test_guest.c - the sampler in a process that forks, takes signals, ends
 * threads and allocates in all of it, at a rate of 1: every allocation a sample.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "collector.h"
#include "fixture.h"
#include "heap/lock.h"
#include "arch.h"
#include "skip.h"
#include "waiting.h"

#define DEADLINE_S 600

static _Atomic int stop;

SITE static void *
site_busy(size_t size)
{
	return malloc(size);
}

static void *
allocate_until_stop(void *arg)
{
	void    *p[32] = { NULL };
	uint64_t x = (uintptr_t)arg + 88172645463325252ULL;

	while (!stop) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		free(p[x % 32]);
		p[x % 32] = site_busy((x >> 8) % 5000 + 1);
		memset(p[x % 32], (int)x, 1);
	}
	for (int i = 0; i < 32; i++)
		free(p[i]);
	return NULL;
}

static void
busy_threads(pthread_t *t, int n)
{
	stop = 0;
	for (int i = 0; i < n; i++)
		assert_int_equal(pthread_create(&t[i], NULL, allocate_until_stop, (void *)(uintptr_t)i), 0);
}

static void
busy_threads_end(pthread_t *t, int n)
{
	stop = 1;
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

/* A child that hangs is killed by its own alarm, which the status shows. */
static int
child_status(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* -1: it hangs, with every signal blocked perhaps. */
static int
child_status_soon(pid_t pid)
{
	pid_t ended;
	int   status;

	WAIT_FOR_S((ended = waitpid(pid, &status, WNOHANG)) == pid, DEADLINE_S);
	if (ended == pid)
		return status;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -1;
}

static int
child_works(char **blocks, int n)
{
	void *p;

	for (int i = 0; i < n; i++) {
		if (!is_sample(blocks[i]) || blocks[i][0] != (char)i)
			return 1;
		if (i % 3 == 0)
			blocks[i] = realloc(blocks[i], 3000);
		if (blocks[i][0] != (char)i)
			return 2;
		free(blocks[i]);
	}
	p = malloc(100);
	if (is_sample(p) || heap_rate() != 0)
		return 3; /* off in the child */
	free(p);
	if (heap_set_rate(1) < 0)
		return 4;
	p = malloc(100);
	if (!is_sample(p))
		return 5; /* and on again when asked */
	free(p);
	return 0;
}

static void
fork_while_sampling(pid_t (*fork_function)(void), int rounds)
{
	pthread_t t[2];
	char     *blocks[50];

	heap_set_rate(1);
	busy_threads(t, 2);
	for (int round = 0; round < rounds; round++) {
		pid_t pid;

		for (int i = 0; i < 50; i++) {
			blocks[i] = malloc((size_t)i * 100 + 1);
			blocks[i][0] = (char)i;
		}
		pid = fork_function();
		if (pid == 0) {
			alarm(DEADLINE_S);
			_exit(child_works(blocks, 50));
		}
		assert_int_equal(child_status(pid), 0);
		for (int i = 0; i < 50; i++)
			free(blocks[i]);
	}
	busy_threads_end(t, 2);
	heap_set_rate(0);
}

static void
a_forked_child_frees_its_parents_blocks_and_is_off(void **state)
{
	(void)state;
#ifdef SANITIZED
	SKIP("the sanitizer's allocator may be locked in a child, for good");
#endif
	fork_while_sampling(fork, 150);
}

/* ---- fork handlers of the daemon ---- */

static _Atomic int  handler_on, worker_asked, worker_done, naps;
static void        *to_grow;
static bool         ask_in_use;
static int          in_use_status;
static void *_Atomic from_prepare;

static void *
worker(void *arg)
{
	(void)arg;
	while (!stop)
		if (worker_asked) {
			worker_asked = 0;
			for (int i = 0; i < 10; i++)
				free(malloc((size_t)i * 100));
			free(from_prepare);
			from_prepare = malloc(2000);
			worker_done = 1;
		}
	return NULL;
}

/* In the place of the libc's. */
int
nanosleep(const struct timespec *time, struct timespec *rest)
{
	naps++;
	return clock_nanosleep(CLOCK_REALTIME, 0, time, rest) ? -1 : 0;
}

/* Waits for another thread to allocate, as one does that quiesces its workers. */
static void
handler(void)
{
	uint64_t bytes;

	if (to_grow)
		to_grow = realloc(to_grow, 100000);
	if (ask_in_use)
		in_use_status = COLLECTOR_WITH(in_use)->in_use(&bytes);
	if (!handler_on)
		return;
	free(from_prepare);
	from_prepare = malloc(1000);
	worker_done = 0;
	worker_asked = 1;
	while (!worker_done)
		;
}

static void *left_to_child;

static void
free_in_child(void)
{
	free(left_to_child);
	left_to_child = NULL;
}

/* Before ours: its prepare part runs after ours, while we hold every lock.  A new stack waits 50 ms then. */
static void
register_handler(void)
{
	pthread_atfork(handler, NULL, free_in_child);
}

__attribute__((used, section(".preinit_array"))) static void (*const before_ours)(void) = register_handler;

static void
a_fork_handler_may_free_in_the_child_before_ours(void **state)
{
	struct profile p;
	pid_t          pid;

	(void)state;
	heap_set_rate(1);
	left_to_child = malloc(100);
	pid = fork();
	if (pid == 0) {
		alarm(DEADLINE_S);
		_exit(heap_set_rate(1) != 0 || heap_snapshot(&p, false) != 0);
	}
	free_in_child(); /* and here */
	assert_int_equal(child_status(pid), 0);
	heap_set_rate(0);
}

static void
a_fork_handler_may_wait_for_a_thread_that_allocates(void **state)
{
	pthread_t t;

	(void)state;
	heap_set_rate(1);
	stop = 0;
	assert_int_equal(pthread_create(&t, NULL, worker, NULL), 0);
	handler_on = 1;
	alarm(DEADLINE_S);
	for (int i = 0; i < 5; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		assert_int_equal(child_status(pid), 0);
	}
	alarm(0);
	handler_on = 0;
	stop = 1;
	pthread_join(t, NULL);
	free(from_prepare);
	heap_set_rate(0);
}

/* In a thread of its own, whose next sample is far away then. */
static void *
grow_a_sampled_block_in_a_fork(void *arg)
{
	uint64_t lost;
	pid_t    pid;

	heap_set_rate(1);
	to_grow = malloc(100);
	heap_set_rate((uint64_t)1 << 40);
	free(site_busy(100)); /* the last one that was drawn with 1 */
	lost = heap_lost();
	pid = fork();
	if (pid == 0)
		_exit(0);
	*(uint64_t *)arg = heap_lost() - lost;
	waitpid(pid, NULL, 0);
	heap_set_rate(0);
	free(to_grow);
	to_grow = NULL;
	return NULL;
}

static void
what_is_no_sample_is_not_lost_while_a_thread_forks(void **state)
{
	pthread_t t;
	uint64_t  lost = 1;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, grow_a_sampled_block_in_a_fork, &lost), 0);
	pthread_join(t, NULL);
	assert_int_equal(lost, 0);
}

/* The server's loop asks this. */
static void
nobody_waits_for_a_fork_to_tell_the_bytes_in_use(void **state)
{
	uint64_t bytes;
	pid_t    pid;

	(void)state;
	heap_set_rate(1);
	naps = 0;
	ask_in_use = true;
	pid = fork();
	if (pid == 0)
		_exit(0);
	ask_in_use = false;
	assert_int_equal(child_status(pid), 0);
	assert_int_equal(in_use_status, -EBUSY);
	assert_int_equal(naps, 0);
	assert_int_equal(COLLECTOR_WITH(in_use)->in_use(&bytes), 0);
	assert_true(bytes > 0);
	heap_set_rate(0);
}

/* A child made without fork handlers, from a process with threads in the lock. */
static pid_t
bare_fork(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void
a_child_that_ran_no_fork_handlers_does_not_hang(void **state)
{
	pthread_t t[2];
	char     *blocks[50];

	(void)state;
	heap_set_rate(1);
	busy_threads(t, 2);
	for (int round = 0; round < 200; round++) {
		pid_t pid;

		for (int i = 0; i < 50; i++)
			blocks[i] = malloc((size_t)i * 100 + 1);
		pid = bare_fork();
		if (pid == 0) {
			alarm(DEADLINE_S);
			for (int i = 0; i < 50; i++)
				component_hooks.release(blocks[i]); /* free itself may be locked for good */
			_exit(0);
		}
		assert_int_equal(child_status(pid), 0);
		for (int i = 0; i < 50; i++)
			free(blocks[i]);
	}
	busy_threads_end(t, 2);
	heap_set_rate(0);
}

/* ---- signals ---- */

static void *volatile in_handler[64];
static _Atomic unsigned long handled;

/* The program's own code: the test, the hooks and the sampler, and no allocator. */
extern const char __executable_start[], etext[];

static bool
is_ours(const ucontext_t *at)
{
	uintptr_t pc = ARCH_PC(at);

	return pc >= (uintptr_t)__executable_start && pc < (uintptr_t)etext;
}

/* Not allowed, and done: it must not hang because of us.  The allocator behind us is
 * not to be entered twice (glibc's and the sanitizer's lock themselves out), so
 * it is done only where our own code has been interrupted. */
static void
on_alarm(int number, siginfo_t *info, void *context)
{
	unsigned long i;

	(void)number;
	(void)info;
	if (!is_ours(context))
		return;
	i = handled++ % 64;
	free(in_handler[i]);
	in_handler[i] = malloc(i * 50 + 1);
}

static void
malloc_in_a_signal_handler_does_not_hang(void **state)
{
	struct sigaction  action = { .sa_sigaction = on_alarm, .sa_flags = SA_RESTART | SA_SIGINFO }, old;
	struct sigevent   event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGVTALRM };
	struct itimerspec often = { { 0, 200000 }, { 0, 200000 } };
	timer_t           timer;
	time_t            end = time(NULL) + DEADLINE_S;
	uint64_t          lost = heap_lost(), seen = 0;

	(void)state;
	heap_set_rate(1);
	alarm(DEADLINE_S);
	assert_int_equal(sigaction(SIGVTALRM, &action, &old), 0);
	/* Not a timer of CPU time: those come with the kernel's ticks, of which a busy machine gives few. */
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
	while (handled < 500 && time(NULL) < end) {
		void *p = malloc(100);

		p = realloc(p, 400);
		free(p);
	}
	timer_delete(timer);
	alarm(0);
	assert_int_equal(sigaction(SIGVTALRM, &old, NULL), 0);
	assert_true(handled >= 500);
	heap_set_rate(0);
	for (int i = 0; i < 64; i++)
		seen += is_sample(in_handler[i]);
	assert_true(seen + heap_lost() - lost >= 64);
	for (int i = 0; i < 64; i++)
		free(in_handler[i]);
}

/* ---- threads ---- */

static void *
allocate_and_hand_over(void *arg)
{
	void **place = arg;

	*place = malloc(777);
	free(malloc(10));
	return NULL;
}

static void
blocks_outlive_the_thread_that_made_them(void **state)
{
	(void)state;
	heap_set_rate(1);
	for (int round = 0; round < 300; round++) {
		pthread_t t;
		void     *p = NULL;

		assert_int_equal(pthread_create(&t, NULL, allocate_and_hand_over, &p), 0);
		pthread_join(t, NULL);
		assert_true(is_sample(p));
		free(malloc(1));
		free(p);
	}
	heap_set_rate(0);
}

static void *
toggle(void *arg)
{
	unsigned i = 0;

	(void)arg;
	while (!stop)
		heap_set_rate((uint64_t[]){ 1, 0, 512 }[i++ % 3]);
	return NULL;
}

static void
switching_on_and_off_under_load_loses_nothing(void **state)
{
	pthread_t       t[2], switcher;
	struct profile  p;
	struct site_sum sum;

	(void)state;
	busy_threads(t, 2);
	assert_int_equal(pthread_create(&switcher, NULL, toggle, NULL), 0);
	rest_ns(500000000);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(heap_snapshot(&p, false), 0);
		for (size_t k = 0; k < p.count; k++)
			assert_true(p.samples[k].counted_values[2] >= 0 && p.samples[k].values[3] >= 0);
		profile_release(&p);
	}
	busy_threads_end(t, 2);
	pthread_join(switcher, NULL);
	heap_set_rate(0);
	/* Whatever it was when they were freed, on or off. */
	sum = site_sum((void *)site_busy);
	assert_true(sum.raw[0] > 0);
	assert_int_equal(sum.raw[2], 0);
	assert_int_equal(sum.raw[3], 0);
}

static void *
fork_until_stop(void *arg)
{
	pid_t pid;

	while (!stop) {
		pid = fork();
		if (pid == 0)
			_exit(0);
		child_status(pid);
	}
	return arg;
}

SITE static void *
site_kept(void)
{
	return malloc(500);
}

static void
a_profile_is_whole_while_the_process_forks(void **state)
{
	pthread_t t;
	void     *p;

	(void)state;
	heap_set_rate(1);
	p = site_kept();
	stop = 0;
	assert_int_equal(pthread_create(&t, NULL, fork_until_stop, NULL), 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(site_sum((void *)site_kept).values[3], 500);
	stop = 1;
	pthread_join(t, NULL);
	free(p);
	heap_set_rate(0);
}

static void *
change_until_stop(void *arg)
{
	while (!stop) {
		heap_set_rate(1);
		heap_set_rate(0);
	}
	return arg;
}

/* Forks while another thread changes the rate; whether all children could change it too. */
static bool
fork_while_changing(int forks)
{
	pthread_t t;
	bool      could = true;
	int       status;
	pid_t     pid;

	stop = 0;
	if (pthread_create(&t, NULL, change_until_stop, NULL))
		return false;
	for (int i = 0; i < forks && could; i++) {
		pid = fork();
		if (pid == 0) {
			alarm(DEADLINE_S);
			_exit(heap_set_rate(1) == 0 && heap_set_rate(0) == 0 ? 0 : 1);
		}
		could = waitpid(pid, &status, 0) == pid && status == 0;
	}
	stop = 1;
	pthread_join(t, NULL);
	return could;
}

/* The first test: in each of these processes it is switched on for the first time. */
static void
a_child_forked_while_sampling_is_first_switched_on_can_switch_it_on(void **state)
{
	pid_t pid;

	(void)state;
#ifdef SANITIZED
	SKIP("the sanitizer's allocator may be locked in a child, for good");
#endif
	for (int i = 0; i < 60; i++) {
		pid = fork();
		if (pid == 0)
			_exit(fork_while_changing(1) ? 0 : 1);
		assert_true(pid > 0);
		assert_int_equal(child_status(pid), 0);
	}
}

/* As of a fork that began before there were handlers: the lock is another thread's, who is not here. */
static void
a_child_that_no_handler_told_waits_for_no_lock_of_its_parent(void **state)
{
	struct heap_lock_hold hold;
	pid_t                 pid;
	char                 *blocks[3];

	(void)state;
#ifdef SANITIZED
	SKIP("the sanitizer's allocator may be locked in a child, for good");
#endif
	assert_int_equal(heap_set_rate(1), 0);
	for (int i = 0; i < 3; i++)
		blocks[i] = malloc(200000);
	for (int what = 0; what < 4; what++) {
		assert_true(heap_lock(&hold));
		pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0L);
		if (pid == 0) {
			struct profile p;

			if (what == 0)
				heap_set_rate(1);
			else if (what == 1)
				_exit(realloc(blocks[0], 400000) == NULL);
			else if (what == 2)
				free(blocks[1]);
			else
				heap_snapshot(&p, false);
			_exit(0);
		}
		heap_unlock(&hold);
		assert_true(pid > 0);
		assert_int_equal(child_status_soon(pid), 0);
	}
	heap_set_rate(0);
	for (int i = 0; i < 3; i++)
		free(blocks[i]);
}

static void
a_child_forked_while_the_rate_changes_can_change_it(void **state)
{
	(void)state;
	assert_true(fork_while_changing(300));
}

static void
a_size_that_nobody_can_have_is_no_sample(void **state)
{
	static volatile size_t size = (size_t)PTRDIFF_MAX + 1;
	uint64_t               lost;
	void                  *p;

	(void)state;
	heap_set_rate(1 << 20);
	free(site_kept()); /* the gap is drawn */
	lost = heap_lost();
	for (int i = 0; i < 3; i++) {
		p = malloc(size);
		assert_null(p);
		free(site_kept());
	}
	assert_int_equal(heap_lost(), lost);
	heap_set_rate(0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_forked_while_sampling_is_first_switched_on_can_switch_it_on),
		cmocka_unit_test(a_forked_child_frees_its_parents_blocks_and_is_off),
		cmocka_unit_test(a_fork_handler_may_free_in_the_child_before_ours),
		cmocka_unit_test(a_fork_handler_may_wait_for_a_thread_that_allocates),
		cmocka_unit_test(what_is_no_sample_is_not_lost_while_a_thread_forks),
		cmocka_unit_test(nobody_waits_for_a_fork_to_tell_the_bytes_in_use),
		cmocka_unit_test(a_child_that_ran_no_fork_handlers_does_not_hang),
		cmocka_unit_test(malloc_in_a_signal_handler_does_not_hang),
		cmocka_unit_test(blocks_outlive_the_thread_that_made_them),
		cmocka_unit_test(a_profile_is_whole_while_the_process_forks),
		cmocka_unit_test(a_child_that_no_handler_told_waits_for_no_lock_of_its_parent),
		cmocka_unit_test(a_child_forked_while_the_rate_changes_can_change_it),
		cmocka_unit_test(a_size_that_nobody_can_have_is_no_sample),
		cmocka_unit_test(switching_on_and_off_under_load_loses_nothing),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
