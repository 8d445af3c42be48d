/*
 * test_threads.c - what the CPU profile makes of births and deaths of threads, with the hooks linked in.
 */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>
#include <cmocka.h>

#include <component/profiler.h>

#include "cpu/cpu.h"
#include "cpu_burn.h"
#include "abi.h"
#include "futex_waits.h"
#include "our_thread.h"
#include "waiting.h"

#define MS 1000000LL

static _Atomic int64_t used_ns;

static void
burn_and_note(int64_t ns)
{
	burn_ns(ns);
	used_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

BURN_FUNCTION(returns)
static void *
returns(void *arg)
{
	burn_and_note(4 * MS);
	return arg;
}

BURN_FUNCTION(exits)
static void *
exits(void *arg)
{
	burn_and_note(4 * MS);
	pthread_exit(arg);
}

BURN_FUNCTION(is_cancelled)
static void *
is_cancelled(void *arg)
{
	burn_and_note(4 * MS);
	pthread_cancel(pthread_self());
	pthread_testcancel();
	return arg;
}

BURN_FUNCTION(returns_c11)
static int
returns_c11(void *arg)
{
	burn_and_note(4 * MS);
	return arg ? 4711 : 0;
}

static struct cpu_window *
window_open(void)
{
	struct cpu_window *w = NULL;

	assert_int_equal(cpu_window_open(&w), 0);
	used_ns = 0;
	return w;
}

static void
window_check(struct cpu_window *w, const char *begin, const char *end)
{
	struct profile p;
	int64_t        seen, truth = used_ns / (10 * MS);

	assert_int_equal(cpu_window_close(w, &p), 0);
	seen = burn_samples_between(&p, begin, end);
	print_message("# %lld samples, %lld periods used\n", (long long)seen, (long long)truth);
	assert_in_range(seen, truth * 85 / 100, truth * 115 / 100);
	profile_release(&p);
}

#define WINDOW_CHECK(w, name) window_check(w, __start_text_##name, __stop_text_##name)

static void
run_many(void *(*run)(void *), void *result)
{
	pthread_t t;
	void     *got;
	int       i;

	for (i = 0; i < 150; i++) {
		assert_int_equal(pthread_create(&t, NULL, run, &used_ns), 0);
		assert_int_equal(pthread_join(t, &got), 0);
		assert_ptr_equal(got, result);
	}
}

static void
threads_shorter_than_a_period_are_counted_when_they_return(void **state)
{
	struct cpu_window *w = window_open();

	(void)state;
	run_many(returns, &used_ns);
	WINDOW_CHECK(w, returns);
}

static void
threads_shorter_than_a_period_are_counted_when_they_exit(void **state)
{
	struct cpu_window *w = window_open();

	(void)state;
	run_many(exits, &used_ns);
	WINDOW_CHECK(w, exits);
}

static void
threads_shorter_than_a_period_are_counted_when_they_are_cancelled(void **state)
{
	struct cpu_window *w = window_open();

	(void)state;
	run_many(is_cancelled, PTHREAD_CANCELED);
	WINDOW_CHECK(w, is_cancelled);
}

static void
threads_of_c11_are_counted_and_give_their_result(void **state)
{
	struct cpu_window *w = window_open();
	thrd_t             t;
	int                i, got;

	(void)state;
	for (i = 0; i < 150; i++) {
		assert_int_equal(thrd_create(&t, returns_c11, &used_ns), thrd_success);
		assert_int_equal(thrd_join(t, &got), thrd_success);
		assert_int_equal(got, 4711);
	}
	WINDOW_CHECK(w, returns_c11);
}

static atomic_bool stop;

static void *
waits(void *arg)
{
	WAIT_FOR(stop);
	return arg;
}

static void
threads_outlive_the_window_they_were_born_in(void **state)
{
	struct cpu_window *w = window_open();
	pthread_t          t[20];
	void              *got;
	int                i;

	(void)state;
	stop = false;
	for (i = 0; i < 20; i++)
		assert_int_equal(pthread_create(&t[i], NULL, waits, &used_ns), 0);
	cpu_window_cancel(w);
	stop = true;
	for (i = 0; i < 20; i++) {
		assert_int_equal(pthread_join(t[i], &got), 0);
		assert_ptr_equal(got, &used_ns);
	}
	assert_int_equal(component_hooks.thread_state, HOOKS_OFF);
}

static void
a_thread_that_cannot_be_made_is_an_error_as_ever_and_nothing_leaks(void **state)
{
	struct cpu_window *w = window_open();
	pthread_attr_t     attr;
	pthread_t          t;
	int                i;

	(void)state;
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, (size_t)1 << 46), 0);
	for (i = 0; i < 1000; i++)
		assert_int_equal(pthread_create(&t, &attr, returns, NULL), EAGAIN);
	pthread_attr_destroy(&attr);
	run_many(returns, &used_ns); /* still seen: no place was lost */
	WINDOW_CHECK(w, returns);
}

/* Long enough for several looks, after each of which arming a thread reads a file. */
static void *
is_armed_with_a_cancel_pending(void *arg)
{
	int64_t begin = now_ns();

	pthread_cancel(pthread_self());
	do {
		cpu_thread_ending_from(NULL);
		cpu_thread_started();
	} while (now_ns() - begin < 300 * MS);
	return arg;
}

static void
a_thread_is_not_cancelled_while_it_is_armed(void **state)
{
	struct cpu_window *w = window_open();
	pthread_t          t;
	void              *got;

	(void)state;
	alarm(600); /* a lock that was lost is waited for */
	assert_int_equal(pthread_create(&t, NULL, is_armed_with_a_cancel_pending, &used_ns), 0);
	assert_int_equal(pthread_join(t, &got), 0);
	assert_ptr_equal(got, &used_ns);
	cpu_window_cancel(w);
	alarm(0);
}

static pthread_key_t key;
static int           errno_at_begin, errno_at_end;

static void
note_errno(void *arg)
{
	(void)arg;
	errno_at_end = errno;
}

static void *
leaves_errno(void *arg)
{
	errno_at_begin = errno;
	pthread_setspecific(key, arg);
	errno = 4711;
	return arg;
}

static void
errno_is_kept_when_a_thread_begins_and_ends(void **state)
{
	struct cpu_window *w = window_open();

	(void)state;
	assert_int_equal(pthread_key_create(&key, note_errno), 0);
	errno_at_begin = errno_at_end = -1;
	run_many(leaves_errno, &used_ns);
	assert_int_equal(errno_at_begin, 0);
	assert_int_equal(errno_at_end, 4711);
	pthread_key_delete(key);
	cpu_window_cancel(w);
}

/* ---- how often a window looks ---- */

static pid_t
thread_of_windows(void)
{
	DIR           *d = opendir("/proc/self/task");
	struct dirent *e;
	char           path[64], name[32];
	pid_t          tid = 0;
	FILE          *f;

	assert_non_null(d);
	while ((e = readdir(d)) != NULL) {
		snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", e->d_name);
		f = fopen(path, "r");
		if (f && fgets(name, sizeof(name), f) && strcmp(name, "component-cpu\n") == 0)
			tid = (pid_t)atoi(e->d_name);
		if (f)
			fclose(f);
	}
	closedir(d);
	return tid;
}

/* Times that it has gone to sleep. */
static long
sleeps(pid_t tid)
{
	char  path[64], line[128];
	long  n = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "voluntary_ctxt_switches: %ld", &n);
	fclose(f);
	return n;
}

/* Until it has gone to sleep again. */
static int64_t
pause_of(pid_t tid)
{
	int64_t begin = now_ns();
	long    before = sleeps(tid);

	WAIT_FOR(sleeps(tid) != before);
	return now_ns() - begin;
}

static _Atomic int64_t first_pause, shortest_pause; /* as they are asked for */

static void
note_pause(int64_t ns)
{
	int64_t none = 0;

	if (!our_thread_is())
		return;
	atomic_compare_exchange_strong(&first_pause, &none, ns);
	if (ns < shortest_pause)
		shortest_pause = ns;
}

static atomic_int begun;

static void *
waits_for(void *barrier)
{
	begun++;
	pthread_barrier_wait(barrier);
	return NULL;
}

struct many {
	pthread_barrier_t barrier;
	pthread_t         t[300];
	int               count;
};

static void
many_begin(struct many *m, int count, bool one_by_one)
{
	m->count = count;
	begun = 0;
	assert_int_equal(pthread_barrier_init(&m->barrier, NULL, (unsigned)count + 1), 0);
	for (int i = 0; i < count; i++) {
		assert_int_equal(pthread_create(&m->t[i], NULL, waits_for, &m->barrier), 0);
		if (one_by_one)
			WAIT_FOR(begun > i);
	}
}

static void
many_end(struct many *m)
{
	pthread_barrier_wait(&m->barrier);
	for (int i = 0; i < m->count; i++)
		pthread_join(m->t[i], NULL);
	pthread_barrier_destroy(&m->barrier);
}

/* The pause after so many threads began at once. */
static int64_t
pause_with(pid_t tid, int threads)
{
	struct many m;
	int64_t     pause;

	pause_of(tid);
	many_begin(&m, threads, false);
	pause = pause_of(tid);
	many_end(&m);
	return pause;
}

/* A window that looks once a second. */
static struct cpu_window *
calm_window(pid_t *ret_tid)
{
	struct cpu_window *w = window_open();
	int64_t            pause = 0;

	WAIT_FOR_S((*ret_tid = thread_of_windows()) > 0, 60); /* it names itself */
	assert_true(*ret_tid > 0);
	WAIT_FOR_S((pause = pause_of(*ret_tid)) > 900 * MS, 60);
	assert_true(pause > 900 * MS);
	return w;
}

static void
a_window_looks_once_a_second_where_nothing_happens(void **state)
{
	pid_t tid;

	(void)state;
	cpu_window_cancel(calm_window(&tid));
}

/* Where the hooks tell of nothing, it sleeps 18 times before it first sleeps for a second. */
static void
a_window_looks_so_seldom_from_its_start(void **state)
{
	pid_t              tid;
	struct cpu_window *w = calm_window(&tid);

	(void)state;
	assert_in_range(sleeps(tid), 1, 9);
	cpu_window_cancel(w);
}

/* Where they do not, it sleeps the whole second, and longer on a slow machine. */
static void
many_threads_that_begin_at_once_end_the_pause(void **state)
{
	pid_t              tid;
	struct cpu_window *w = calm_window(&tid);
	int64_t            pause = 0;

	(void)state;
	WAIT_FOR_S((pause = pause_with(tid, 16)) < 500 * MS, 60);
	assert_true(pause < 500 * MS);
	cpu_window_cancel(w);
}

/* They might fill the ring in less than the 200 ms after which it is looked at where little happens. */
static void
a_window_of_many_threads_begins_with_short_pauses(void **state)
{
	struct many        m;
	struct cpu_window *w;

	(void)state;
	many_begin(&m, 300, false);
	first_pause = 0;
	futex_wait_begins = note_pause;
	w = window_open();
	WAIT_FOR(first_pause);
	futex_wait_begins = NULL;
	assert_int_equal(first_pause, 50 * MS);
	cpu_window_cancel(w);
	many_end(&m);
}

/* One by one: no look finds one that no hook has told of yet, which is followed by short pauses in any case. */
static void
after_many_threads_have_begun_pauses_are_as_short(void **state)
{
	struct cpu_window *w;
	struct many        m;
	pid_t              tid;

	(void)state;
	assert_int_equal(component_profiler_set_cpu_rate(500), 0);
	w = calm_window(&tid);
	component_profiler_set_cpu_rate(0); /* for the next */
	shortest_pause = INT64_MAX;
	futex_wait_begins = note_pause;
	many_begin(&m, 50, true);
	WAIT_FOR_S(shortest_pause <= 50 * MS, 60);
	futex_wait_begins = NULL;
	assert_int_equal(shortest_pause, 50 * MS);
	many_end(&m);
	cpu_window_cancel(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_shorter_than_a_period_are_counted_when_they_return),
		cmocka_unit_test(threads_shorter_than_a_period_are_counted_when_they_exit),
		cmocka_unit_test(threads_shorter_than_a_period_are_counted_when_they_are_cancelled),
		cmocka_unit_test(threads_of_c11_are_counted_and_give_their_result),
		cmocka_unit_test(threads_outlive_the_window_they_were_born_in),
		cmocka_unit_test(a_thread_is_not_cancelled_while_it_is_armed),
		cmocka_unit_test(errno_is_kept_when_a_thread_begins_and_ends),
		cmocka_unit_test(a_window_looks_once_a_second_where_nothing_happens),
		cmocka_unit_test(a_window_looks_so_seldom_from_its_start),
		cmocka_unit_test(many_threads_that_begin_at_once_end_the_pause),
		cmocka_unit_test(after_many_threads_have_begun_pauses_are_as_short),
		cmocka_unit_test(a_window_of_many_threads_begins_with_short_pauses),
		cmocka_unit_test(a_thread_that_cannot_be_made_is_an_error_as_ever_and_nothing_leaks),
	};

	if (burn_skip_all())
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
