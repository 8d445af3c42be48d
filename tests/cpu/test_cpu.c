/*
 * test_cpu.c - the CPU profile tells the truth: shares, totals, windows, threads
 * that come and go.  Reference is each thread's own CPU clock.
 */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <cmocka.h>

#include <component/profiler.h>

#include "cpu/cpu.h"
#include "clock.h"
#include "collector.h"
#include "cpu_burn.h"
#include "thread_id.h"
#include "unwind.h"

#define MS     1000000LL

/* Samples of one thread that a close may miss: the kernel looks at a thread's clock at
 * its own ticks, which on a busy machine find another thread running. */
#define UNDER_WAY 3

static atomic_bool stop, go;

struct worker {
	void *(*run)(void *);
	const char      *text, *text_end;
	int              share; /* percent of one processor */
	pthread_t        thread;
};

/* When a window began or ended, and what the workers had used, before and after it
 * did: on a busy machine they go on meanwhile. */
struct moment {
	int64_t wall[2], used[2][4];
};

static void
moment_half(struct moment *m, int half, struct worker *w, int count)
{
	clockid_t clock;
	int       i;

	if (half == 0)
		m->wall[0] = now_ns();
	for (i = 0; i < 4; i++) {
		m->used[half][i] = 0; /* not born yet */
		if (i < count && pthread_getcpuclockid(w[i].thread, &clock) == 0)
			m->used[half][i] = clock_ns(clock);
	}
	if (half == 1)
		m->wall[1] = now_ns();
}

/* Burns in slices so that it uses its share of the time that has passed. */
#define WORKER(name)                                                                       \
	BURN_FUNCTION(name)                                                                \
	static void *name(void *arg)                                                       \
	{                                                                                  \
		struct worker *w = arg;                                                    \
		int64_t        begin;                                                      \
		WAIT_FOR(go);                                                              \
		begin = now_ns();                                                          \
		while (!stop) {                                                            \
			int64_t passed = now_ns() - begin;                                 \
			int64_t due = passed * w->share / 100;                             \
			int64_t left = due - clock_ns(CLOCK_THREAD_CPUTIME_ID);            \
			if (left > 0)                                                      \
				burn_ns(left < 20 * MS ? left : 20 * MS);                  \
			else                                                               \
				rest_ns(2 * MS);                                           \
		}                                                                          \
		return NULL;                                                               \
	}

#define ROW(name) name, __start_text_##name, __stop_text_##name

WORKER(burn_half)
WORKER(burn_third)
WORKER(burn_sixth)
WORKER(burn_little)

static void
check_form(const struct profile *p)
{
	size_t i;

	assert_string_equal(p->name, "profile");
	assert_int_equal(p->type_count, 2);
	assert_string_equal(p->types[0].type, "samples");
	assert_string_equal(p->types[0].unit, "count");
	assert_string_equal(p->types[1].type, "cpu");
	assert_string_equal(p->types[1].unit, "nanoseconds");
	assert_string_equal(p->period_type.type, "cpu");
	assert_int_equal(p->period, 10 * MS);
	for (i = 0; i < p->count; i++)
		assert_int_equal(p->samples[i].values[1], p->samples[i].values[0] * p->period);
	assert_non_null(strstr(p->comments, "unwinder: "));
	assert_non_null(strstr(p->comments, "signal: "));
	assert_non_null(strstr(p->comments, "longest handler: "));
}

/* Each worker has the samples of its CPU time in the window, which is known to lie
 * between the two; a few are under way at either end. */
static void
check_shares(const struct profile *p, struct worker *w, const struct moment *from, const struct moment *to)
{
	int64_t seen, least, most, all = 0, all_least = 0, all_most = 0;
	int     i;

	for (i = 0; i < 4; i++) {
		seen = burn_samples_between(p, w[i].text, w[i].text_end);
		least = (to->used[0][i] - from->used[1][i]) / (10 * MS);
		most = (to->used[1][i] - from->used[0][i]) / (10 * MS);
		print_message("# %lld samples for %lld to %lld periods of CPU time\n", (long long)seen,
			      (long long)least, (long long)most);
		assert_in_range(seen + UNDER_WAY, least * 94 / 100, most * 106 / 100 + 2 * UNDER_WAY);
		all += seen;
		all_least += least;
		all_most += most;
	}
	print_message("# %lld samples for %lld to %lld; %s\n", (long long)all, (long long)all_least,
		      (long long)all_most, strstr(p->comments, "longest handler"));
	/* and the whole of it: 100 a second */
	assert_in_range(all + 2 * UNDER_WAY, all_least * 94 / 100, all_most * 106 / 100 + 4 * UNDER_WAY);
	assert_int_equal(p->lost, 0);
}

static void
four_threads_appear_with_their_shares_in_every_window(void **state)
{
	struct worker      w[4] = { { ROW(burn_half), 50 }, { ROW(burn_third), 30 }, { ROW(burn_sixth), 15 }, { ROW(burn_little), 5 } };
	struct cpu_window *all, *part;
	struct moment      at[4];
	struct profile     p_all, p_part;
	int                i;

	(void)state;
	stop = go = false;
	for (i = 0; i < 2; i++)
		pthread_create(&w[i].thread, NULL, w[i].run, &w[i]);
	moment_half(&at[0], 0, w, 2);
	assert_int_equal(cpu_window_open(&all), 0);
	moment_half(&at[0], 1, w, 2);
	for (; i < 4; i++) /* these are born inside the window */
		pthread_create(&w[i].thread, NULL, w[i].run, &w[i]);
	/* They work when they have been seen: what was used before is told at one place. */
	if (access("/proc/self/timers", R_OK) == 0)
		while (timers_of_process() < 5)
			rest_ns(5 * MS);
	else
		rest_ns(500 * MS);
	go = true;
	rest_ns(3000 * MS);
	moment_half(&at[1], 0, w, 4);
	assert_int_equal(cpu_window_open(&part), 0);
	moment_half(&at[1], 1, w, 4);
	rest_ns(4000 * MS);
	moment_half(&at[2], 0, w, 4);
	assert_int_equal(cpu_window_close(part, &p_part), 0);
	moment_half(&at[2], 1, w, 4);
	rest_ns(3000 * MS);
	moment_half(&at[3], 0, w, 4);
	assert_int_equal(cpu_window_close(all, &p_all), 0);
	moment_half(&at[3], 1, w, 4);
	stop = true;
	for (i = 0; i < 4; i++)
		pthread_join(w[i].thread, NULL);

	check_form(&p_all);
	check_form(&p_part);
	assert_in_range(p_all.duration_ns, at[3].wall[0] - at[0].wall[1], at[3].wall[1] - at[0].wall[0]);
	assert_in_range(p_part.duration_ns, at[2].wall[0] - at[1].wall[1], at[2].wall[1] - at[1].wall[0]);
	assert_true(p_all.time_ns < p_part.time_ns);
	check_shares(&p_all, w, &at[0], &at[3]);
	check_shares(&p_part, w, &at[1], &at[2]);
	profile_release(&p_all);
	profile_release(&p_part);
	assert_int_equal(stack_table_bytes(), 0);
}

BURN_FUNCTION(short_life)
static void *
short_life(void *arg)
{
	burn_ns(4 * MS);
	return arg;
}

BURN_FUNCTION(short_life_hooked)
static void *
short_life_hooked(void *arg)
{
	sigset_t all;

	cpu_thread_started();
	burn_ns(2 * MS);
	/* What falls due from here on no signal tells: on any kernel, whatever its ticks. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	burn_ns(2 * MS);
	cpu_thread_ending_from((const void *)(uintptr_t)short_life_hooked);
	return arg;
}

static void
run_short(void *(*run)(void *), int n)
{
	pthread_t t;

	while (n-- > 0) {
		assert_int_equal(pthread_create(&t, NULL, run, NULL), 0);
		pthread_join(t, NULL);
	}
}

static void
threads_shorter_than_a_period_are_counted_where_births_and_deaths_are_seen(void **state)
{
	struct cpu_window *w;
	struct profile     p;
	int64_t            seen, begin = burn_clock();

	(void)state;
	assert_int_equal(cpu_window_open(&w), 0);
	run_short(short_life_hooked, 200); /* 0.8 s: 80 samples */
	assert_int_equal(cpu_window_close(w, &p), 0);
	seen = burn_samples(&p, short_life_hooked);
	print_message("# %lld samples of 80, %lld at the end\n", (long long)seen, (long long)burn_pseudo(&p, STACK_PSEUDO_ENDED));
	assert_in_range(seen, 70, burn_most(begin));
	/* Where they were when most of it passed is not known: it is not their routine's own. */
	assert_true(burn_pseudo(&p, STACK_PSEUDO_ENDED) > seen / 3); /* half of them at least, by first phases */
	for (size_t i = 0; i < p.count; i++) {
		unsigned         count;
		const uintptr_t *pcs = stack_table_pcs(p.samples[i].stack, &count);

		assert_true(pcs[0] != (uintptr_t)short_life_hooked);
	}
	profile_release(&p);
}

static void
time_of_threads_that_come_and_go_unseen_is_shown_as_lost(void **state)
{
	struct cpu_window *w;
	struct profile     p;
	int64_t            used[2];

	(void)state;
	used[0] = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	assert_int_equal(cpu_window_open(&w), 0);
	run_short(short_life, 100);
	assert_int_equal(cpu_window_close(w, &p), 0);
	used[1] = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	check_form(&p);
	print_message("# %lld samples, %lld of them lost, in %lld periods\n", (long long)burn_total(&p), (long long)p.lost,
		      (long long)((used[1] - used[0]) / (10 * MS)));
	/* of 40; a look may well see one in three, or its last sample come late */
	assert_in_range(p.lost, 20, (used[1] - used[0]) / (10 * MS) + 20);
	assert_int_equal(burn_pseudo(&p, STACK_PSEUDO_LOST), p.lost);
	assert_in_range(burn_total(&p) + 6, (used[1] - used[0]) / (10 * MS), (used[1] - used[0]) / (10 * MS) + 12);
	assert_non_null(strstr(p.comments, " of them are of threads that were beginning or ending, or lived too short to be seen\n"));
	profile_release(&p);
	assert_int_equal(stack_table_bytes(), 0);
}

BURN_FUNCTION(takes_a_place)
static void *
takes_a_place(void *arg)
{
	burn_ns(160 * MS);
	return arg;
}

/* Their number is the same at every look. */
static void
a_thread_that_takes_the_place_of_another_is_sampled(void **state)
{
	struct cpu_window *w;
	struct profile     p;
	int64_t            seen, begin = burn_clock();

	(void)state;
	assert_int_equal(cpu_window_open(&w), 0);
	run_short(takes_a_place, 6);
	assert_int_equal(cpu_window_close(w, &p), 0);
	seen = burn_samples(&p, takes_a_place);
	print_message("# %lld samples of 96\n", (long long)seen);
	assert_in_range(seen, 64, burn_most(begin));
	profile_release(&p);
}

static unsigned
entries(const char *path)
{
	DIR           *d = opendir(path);
	struct dirent *e;
	unsigned       n = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static unsigned
mappings(void)
{
	char     line[512];
	unsigned n = 0;
	FILE    *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof(line), f))
		n++;
	if (f)
		fclose(f);
	return n;
}

static void
two_hundred_windows_leave_nothing_behind(void **state)
{
	unsigned           i, fds = entries("/proc/self/fd"), maps = 0;
	struct cpu_window *w;
	struct profile     p;

	(void)state;
	for (i = 0; i < 200; i++) {
		assert_int_equal(cpu_window_open(&w), 0);
		if (i == 100 && access("/proc/self/timers", R_OK) == 0)
			assert_true(timers_of_process() > 0);
		if (i % 3 == 0) {
			cpu_window_cancel(w);
		} else {
			assert_int_equal(cpu_window_close(w, &p), 0);
			profile_release(&p);
		}
		if (i == 0)
			maps = mappings(); /* glibc keeps a thread's stack for the next */
	}
	assert_int_equal(timers_of_process(), 0);
	assert_int_equal(entries("/proc/self/fd"), fds);
	assert_int_equal(entries("/proc/self/task"), 1);
	assert_int_equal(stack_table_bytes(), 0);
	/* the ring and the slots are gone too; allocators map a little of their own */
	assert_in_range(mappings(), 1, maps + 10);
}

BURN_FUNCTION(deep)
static int
deep(int n)
{
	int below;

	if (n == 0) {
		burn_ns(300 * MS);
		return 0;
	}
	below = deep(n - 1);
	__asm__ volatile("" ::: "memory");
	return below + 1;
}

static void
stacks_deeper_than_the_limit_are_counted_as_truncated(void **state)
{
	struct cpu_window *w;
	struct profile     p;
	int64_t            begin = burn_clock();

	(void)state;
	assert_int_equal(cpu_window_open(&w), 0);
	deep(1000);
	assert_int_equal(cpu_window_close(w, &p), 0);
	assert_in_range(p.truncated, 20, burn_most(begin));
	assert_in_range(burn_pseudo(&p, STACK_PSEUDO_TRUNCATED), 20, burn_most(begin));
	assert_true(burn_samples(&p, deep) >= 20);
	profile_release(&p);
}

/* Samples that were due in the window and came after its end. */
static int64_t
samples_after(const struct profile *p)
{
	static const char key[] = "samples that came after its end: ";
	const char       *at = strstr(p->comments, key);

	return at ? strtoll(at + strlen(key), NULL, 10) : 0;
}

static pthread_mutex_t idle_until = PTHREAD_MUTEX_INITIALIZER;

BURN_FUNCTION(idle)
static void *
idle(void *arg)
{
	pthread_mutex_lock(&idle_until);
	pthread_mutex_unlock(&idle_until);
	return arg;
}

static void
a_thousand_threads_are_armed_and_only_the_busy_one_shows(void **state)
{
	enum { N = 1000 };
	static pthread_t   threads[N];
	pthread_attr_t     attr;
	struct cpu_window *w;
	struct profile     p;
	int64_t            begin, opened, used;
	int                i;

	(void)state;
	pthread_mutex_lock(&idle_until);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (i = 0; i < N; i++)
		if (pthread_create(&threads[i], &attr, idle, NULL) != 0)
			break;
	if (i < N)
		print_message("# only %d threads can be had\n", i);
	begin = now_ns();
	assert_int_equal(cpu_window_open(&w), 0);
	opened = now_ns() - begin;
	used = burn_clock();
	if (access("/proc/self/timers", R_OK) == 0)
		assert_in_range(timers_of_process(), i, i + 1);
	deep(0);
	assert_int_equal(cpu_window_close(w, &p), 0);
	print_message("# opened in %.1f ms, closed; %lld samples\n", (double)opened / 1e6, (long long)burn_total(&p));
	/* On a busy machine the tick meets it late or not at all, which is told. */
	assert_in_range(burn_samples(&p, deep) + samples_after(&p) + (int64_t)p.lost, 24, burn_most(used));
	pthread_mutex_unlock(&idle_until);
	while (i-- > 0)
		pthread_join(threads[i], NULL);
	assert_int_equal(timers_of_process(), 0);
	profile_release(&p);
	pthread_attr_destroy(&attr);
}

static void
a_rate_holds_for_the_windows_that_begin_when_none_is_open(void **state)
{
	struct cpu_window *before, *meanwhile, *w;
	struct profile     p;
	int64_t            begin;

	(void)state;
	assert_int_equal(component_profiler_set_cpu_rate(CPU_HZ_MAX + 1), -EINVAL);
	assert_int_equal(cpu_window_open(&before), 0);
	assert_int_equal(component_profiler_set_cpu_rate(1000), 0);
	assert_int_equal(cpu_window_open(&meanwhile), 0);
	assert_int_equal(cpu_window_close(before, &p), 0);
	assert_int_equal(p.period, 10000000);
	profile_release(&p);
	assert_int_equal(cpu_window_close(meanwhile, &p), 0);
	assert_int_equal(p.period, 10000000);
	profile_release(&p);
	begin = burn_clock();
	assert_int_equal(cpu_window_open(&w), 0);
	deep(0);
	assert_int_equal(cpu_window_close(w, &p), 0);
	assert_int_equal(p.period, 1000000);
	print_message("# %lld samples of 300 ms, and %lld later\n", (long long)burn_samples(&p, deep),
		      (long long)samples_after(&p));
	assert_in_range(burn_samples(&p, deep) + samples_after(&p), 295, 10 * burn_most(begin));
	assert_int_equal(p.lost, 0);
	profile_release(&p);
	assert_int_equal(component_profiler_set_cpu_rate(0), 0);
}

/* A signal that is blocked for a moment is as late as one that the tick has missed. */
static void
samples_that_come_after_the_end_of_a_window_are_told_in_it(void **state)
{
	struct cpu_window *w;
	struct profile     p;
	sigset_t           all, before;
	int64_t            begin = burn_clock();

	(void)state;
	assert_int_equal(component_profiler_set_cpu_rate(1000), 0);
	sigfillset(&all);
	assert_int_equal(cpu_window_open(&w), 0);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	burn_ns(40 * MS);
	assert_int_equal(cpu_window_close(w, &p), 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	print_message("# %lld later\n", (long long)samples_after(&p));
	assert_in_range(samples_after(&p), 39, 10 * burn_most(begin));
	assert_int_equal(p.lost, 0);
	profile_release(&p);
}

#define COPIED_PARTS 1024 /* IOV_MAX */
#define COPIED_BYTES ((size_t)8 << 20)
#define UNMET_NS     (100 * MS)
#define TRIES_MAX    100

struct copier {
	pthread_t  thread;
	atomic_int tid; /* 0: not there yet; -1: its call has returned */
	atomic_int go;
};

/* One system call that nothing interrupts: 2 GiB, which take 200 ms.  The bare call, as a sanitizer's
 * function takes samples behind it. */
static void *
copies(void *arg)
{
	static struct iovec from[COPIED_PARTS], to[COPIED_PARTS];
	struct copier *c = arg;
	char          *memory = malloc(2 * COPIED_BYTES);

	assert_non_null(memory);
	memset(memory, 1, 2 * COPIED_BYTES);
	for (int i = 0; i < COPIED_PARTS; i++) {
		from[i] = (struct iovec){ memory, COPIED_BYTES };
		to[i] = (struct iovec){ memory + COPIED_BYTES, COPIED_BYTES };
	}
	atomic_store(&c->tid, thread_id_self());
	while (!atomic_load(&c->go))
		sched_yield();
	syscall(SYS_process_vm_readv, getpid(), to, (long)COPIED_PARTS, from, (long)COPIED_PARTS, 0L);
	atomic_store(&c->tid, -1);
	free(memory);
	return NULL;
}

/* A window that has most of such a call in it.  False: the call returned before the window was closed. */
static bool
window_of_a_call(struct profile *ret)
{
	struct copier      c = { .tid = 0 };
	struct cpu_window *w;
	int64_t            began;
	bool               lasted;
	int                tid;

	assert_int_equal(pthread_create(&c.thread, NULL, copies, &c), 0);
	while (!(tid = atomic_load(&c.tid)))
		sched_yield();
	assert_int_equal(cpu_window_open(&w), 0);
	atomic_store(&c.go, 1);
	began = thread_clock_ns(tid);
	while (atomic_load(&c.tid) == tid && thread_clock_ns(tid) < began + UNMET_NS)
		sched_yield();
	assert_int_equal(cpu_window_close(w, ret), 0);
	lasted = atomic_load(&c.tid) == tid;
	pthread_join(c.thread, NULL);
	return lasted;
}

/* As one that works in step with the tick: its signal is not blocked, and does not come. */
static void
time_of_a_thread_that_no_tick_meets_is_shown_as_lost(void **state)
{
	struct profile p;
	int            tries = 0;

	(void)state;
	while (!window_of_a_call(&p)) { /* on a busy machine */
		profile_release(&p);
		assert_in_range(++tries, 1, TRIES_MAX);
	}
	print_message("# %lld samples, %lld of them lost\n", (long long)burn_total(&p), (long long)p.lost);
	assert_true(p.lost >= UNMET_NS / (10 * MS) - 1);
	assert_int_equal(burn_pseudo(&p, STACK_PSEUDO_LOST), p.lost);
	assert_non_null(strstr(p.comments, "of them are of threads that no tick of the kernel has met"));
	profile_release(&p);
}

static void
a_window_of_which_nobody_says_how_long_is_thirty_seconds_as_gos(void **state)
{
	(void)state;
	assert_int_equal(collect_profile.seconds, 30);
	assert_int_equal(collect_fgprof.seconds, 30);
	assert_int_equal(collect_trace.seconds, 1);
}

/* By tables: by frame pointers a sample in the vDSO's clock has no caller. */
static int
unwind_on(void **state)
{
	(void)state;
	return unwind_start(UNWIND_AUTO);
}

static int
unwind_off(void **state)
{
	(void)state;
	unwind_stop();
	return 0;
}

static int
rate_off(void **state)
{
	component_profiler_set_cpu_rate(0);
	return unwind_off(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_of_which_nobody_says_how_long_is_thirty_seconds_as_gos),
		cmocka_unit_test_setup_teardown(four_threads_appear_with_their_shares_in_every_window, unwind_on, unwind_off),
		cmocka_unit_test(threads_shorter_than_a_period_are_counted_where_births_and_deaths_are_seen),
		cmocka_unit_test(a_thread_that_takes_the_place_of_another_is_sampled),
		cmocka_unit_test(time_of_threads_that_come_and_go_unseen_is_shown_as_lost),
		cmocka_unit_test(two_hundred_windows_leave_nothing_behind),
		cmocka_unit_test(stacks_deeper_than_the_limit_are_counted_as_truncated),
		cmocka_unit_test_setup_teardown(a_rate_holds_for_the_windows_that_begin_when_none_is_open, unwind_on, rate_off),
		cmocka_unit_test_setup_teardown(samples_that_come_after_the_end_of_a_window_are_told_in_it, unwind_on, rate_off),
		cmocka_unit_test(time_of_a_thread_that_no_tick_meets_is_shown_as_lost),
		cmocka_unit_test(a_thousand_threads_are_armed_and_only_the_busy_one_shows),
	};

	if (burn_skip_all())
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
