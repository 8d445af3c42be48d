/*
 * wall.c - the wall-clock profile: any number of windows on one sampler.
 *
 *     component-wall, 99 times a second: a few threads --> every open window
 *                                        wall/threads.c    wall/window.c
 *     the CPU sampler, beside:           tid, stack ------^ at the window's end
 *
 * At each tick as many threads are looked at as the sampler's own CPU clock allows, a
 * random part of them where that is not all.  If n of N were looked at, each look stands
 * for N / n threads and for the ticks that passed since the last one: so the sum is the
 * number of threads times the duration whatever the part, and each thread's share is
 * right in the mean, because n is fixed before anybody is looked at.
 *
 * Where n is small it also differs from tick to tick.  Then N / n is taken over a block of
 * some hundred looks, for a few that stood for all in a lean tick would scatter most.
 *
 * What a stranger would get wrong:
 * - The moment within a tick is drawn, too: what a program does in step with some clock
 *   would else be seen always or never.
 * - Nobody is signalled.  A thread seen to run may block before a signal reaches it, and
 *   epoll_wait() then says EINTR.  Where running threads stand is told by the CPU samples
 *   of the same window, which fall on what runs only.
 * - The list of threads takes at most a quarter of the allowance.  Between two lists
 *   those that are not on it are stood for by those that are.
 * - A list is spent in advance, and of thousands of threads it costs what seconds allow.
 *   At most half of the allowance pays for it, so that there are looks from the start.
 * - What looks have overdrawn is paid back over some ticks, not by standing still: n
 *   shrinks, and grows again.
 *
 * Life and locks of windows are windows.h's subject.
 *
 * Tests: tests/wall/test_wall.c, tests/wall/fgprof.t.
 */
#include <config.h>

#include "wall.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "collector.h"
#include "cpu_sampler.h"
#include "labels.h"
#include "proc_self.h"
#include "threads.h"
#include "under_valgrind.h"
#include "window.h"
#include "windows.h"

#define TICK_NS       (CLOCK_NS_PER_S / WALL_HZ)
#define SHARE         (WALL_SHARE_MAX * 0.85) /* what is aimed at: the estimate of a look's cost may be late */
#define LIST_PART     0.25  /* of the share, for lists */
#define LIST_PAY      0.5   /* of the share, until a list is paid for */
#define PAY_BACK      64.0  /* ticks over which what was overdrawn is paid back */
#define LOOK_COST_NS  20000.0 /* until it is known */
#define COST_WEIGHT   0.2   /* of the last tick in the mean cost */
#define LATE_TICKS    8     /* that are made up for when the sampler got no processor */
#define LOOKS_MAX     1024  /* of one tick */
#define BLOCK_LOOKS   256   /* of a block, at least, where not all can be looked at */

static struct windows windows;
static void forked(void);

/* By its lock. */
static struct {
	bool                open; /* threads are */
	struct wall_threads threads;
	struct wall_look    looks[LOOKS_MAX + BLOCK_LOOKS]; /* of this block */
	size_t              look_count;
	double              thread_ticks, look_ticks; /* the block's: to stand for, and what stands */
	uint64_t            block_ticks, block_taken;
	int64_t             begin_ns;  /* monotonic */
	uint64_t            last_tick; /* in which somebody was looked at */
	uint64_t            random;
	/* Nanoseconds of the sampler's own clock. */
	int64_t             spent_ns;
	double              left_ns;   /* of the allowance; negative when overdrawn */
	double              list_owed_ns; /* of the last list, not taken from left_ns yet */
	int64_t             left_at_ns;
	double              look_ns;   /* mean cost of a look */
	int64_t             list_next_ns; /* monotonic */
} wall;

static int64_t
own_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* ---- one tick, under the lock ---- */

static void
list_if_due(int64_t now)
{
	double cost;

	if (!wall.threads.stale || (now < wall.list_next_ns && wall.threads.count > 0))
		return;
	wall_threads_list(&wall.threads);
	cost = (double)(own_ns() - wall.spent_ns);
	wall.spent_ns += (int64_t)cost;
	wall.list_owed_ns += cost;
	wall.list_next_ns = now + (int64_t)(cost / (SHARE * LIST_PART));
}

/* How many may be looked at now: what the time since the last tick allows, and some of
 * what is left or missing. */
static size_t
looks_allowed(int64_t now)
{
	double gained = SHARE * (double)(now - wall.left_at_ns), pay = gained * LIST_PAY;
	double most = SHARE * TICK_NS * LATE_TICKS, allowed;

	wall.left_at_ns = now;
	if (pay > wall.list_owed_ns)
		pay = wall.list_owed_ns;
	wall.list_owed_ns -= pay;
	gained -= pay;
	wall.left_ns += gained;
	if (gained > most)
		gained = most;
	if (most < 2 * wall.look_ns)
		most = 2 * wall.look_ns; /* a slow machine must get there some time */
	if (wall.left_ns > most)
		wall.left_ns = most;
	allowed = (gained + wall.left_ns / PAY_BACK) / wall.look_ns;
	if (allowed < 1)
		return wall.left_ns >= wall.look_ns;
	return allowed < LOOKS_MAX ? (size_t)allowed : LOOKS_MAX;
}

/* The block goes to the windows, for all of which it began and ends together. */
static void
block_end(void)
{
	double threads = wall.look_ticks > 0 ? wall.thread_ticks / wall.look_ticks : 0;

	for WINDOWS_EACH(struct wall_window, w, &windows) {
		wall_window_count(w, wall.looks, wall.look_count, threads);
		w->ticks += wall.block_ticks;
		w->taken += wall.block_taken;
	}
	for (size_t i = 0; i < wall.look_count; i++) {
		stack_table_unref(wall.looks[i].stack);
		labels_unref(wall.looks[i].labels);
	}
	wall.look_count = 0;
	wall.thread_ticks = wall.look_ticks = 0;
	wall.block_ticks = wall.block_taken = 0;
}

static uint64_t
tick_of(int64_t now)
{
	return (uint64_t)((now - wall.begin_ns) / TICK_NS);
}

/* n looks are new, of so many threads. */
static void
block_add(int64_t now, size_t n, size_t threads)
{
	uint64_t tick = tick_of(now), ticks = tick > wall.last_tick ? tick - wall.last_tick : 1;

	wall.last_tick = tick;
	for (size_t i = 0; i < n; i++)
		wall.looks[wall.look_count + i].ticks = (double)ticks;
	wall.look_count += n;
	wall.look_ticks += (double)(ticks * n);
	wall.thread_ticks += (double)(ticks * threads);
	wall.block_ticks += ticks;
	wall.block_taken++;
	if (n >= threads || wall.look_count >= BLOCK_LOOKS)
		block_end();
}

static void
tick_take(int64_t now)
{
	int64_t before, after;
	size_t  n, allowed, threads;

	threads = wall_threads_now(&wall.threads);
	before = own_ns();
	wall.left_ns -= (double)(before - wall.spent_ns); /* waking up, waiting for the lock */
	wall.spent_ns = before;
	list_if_due(now);
	allowed = looks_allowed(now);
	if (allowed == 0 && threads > 0)
		return; /* the next one stands for this, too */
	n = wall_threads_look(&wall.threads, wall.looks + wall.look_count, allowed);
	threads = wall_threads_now(&wall.threads);
	if (n == 0 && threads > 0)
		return;
	block_add(now, n, threads);
	after = own_ns();
	wall.left_ns -= (double)(after - wall.spent_ns);
	if (n > 0)
		wall.look_ns += COST_WEIGHT * ((double)(after - wall.spent_ns) / (double)n - wall.look_ns);
	wall.spent_ns = after;
}

/* ---- the thread ---- */

/* Somewhere in the tick after the one of now; false: there is none. */
static bool
wait_for_tick(void)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC), tick = (now - wall.begin_ns) / TICK_NS + 1;

	tick = wall.begin_ns + tick * TICK_NS + (int64_t)(wall_random(&wall.random) * TICK_NS);
	return our_loop_wait(&windows.loop, tick - now);
}

static void *
run(void *arg)
{
	while (wait_for_tick()) {
		pthread_mutex_lock(&windows.lock);
		tick_take(clock_ns(CLOCK_MONOTONIC));
		pthread_mutex_unlock(&windows.lock);
	}
	return arg;
}

/* ---- start and stop, under life ---- */

/* Why there can be no window, or "". */
static const char *
wall_status(void)
{
	if (under_valgrind)
		return "valgrind runs one thread at a time, and the kernel tells of each where valgrind stands; "
		       "profile and goroutine are right";
	return "";
}

static int
start(void)
{
	int err;

	if (under_valgrind)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&windows.lock);
	err = wall_threads_open(&wall.threads);
	if (!err) {
		wall.open = true;
		wall.random = wall.threads.random * 0x9e3779b97f4a7c15ULL | 1;
		wall.begin_ns = wall.left_at_ns = clock_ns(CLOCK_MONOTONIC);
		wall.last_tick = 0;
		wall.spent_ns = wall.list_next_ns = 0;
		wall.left_ns = wall.list_owed_ns = 0;
		wall.look_ns = LOOK_COST_NS;
	}
	pthread_mutex_unlock(&windows.lock);
	return err;
}

static void
stop(int err)
{
	(void)err;
	pthread_mutex_lock(&windows.lock);
	if (wall.open)
		wall_threads_close(&wall.threads);
	wall.open = false;
	pthread_mutex_unlock(&windows.lock);
}

/* The sampler's own clock, from another thread. */
static int64_t
sampler_ns(void)
{
	clockid_t clock;

	return pthread_getcpuclockid(windows.loop.thread, &clock) == 0 ? clock_ns(clock) : 0;
}

/* ---- windows ---- */

static void
begin(struct window *window)
{
	struct wall_window *w = (struct wall_window *)window;

	w->sampler_ns = sampler_ns();
	wall.last_tick = tick_of(window->begin_ns);
}

static void
end(struct window *window)
{
	struct wall_window *w = (struct wall_window *)window;

	w->sampler_ns = sampler_ns() - w->sampler_ns;
	w->threads = wall_threads_now(&wall.threads);
}

/* But for the CPU window. */
static int
copy(const struct window *w, struct window *to)
{
	const struct wall_window *from = (const struct wall_window *)w;
	struct wall_window       *copied = (struct wall_window *)to;

	*copied = *from;
	copied->cpu = NULL;
	copied->counts = (struct window_counts){ 0 };
	return window_counts_copy(&from->counts, &copied->counts);
}

/* The CPU window is cpu/cpu.c's to free. */
static void
forget(struct window *w)
{
	wall_window_forget((struct wall_window *)w);
}

static struct windows windows = {
	.name = "component-wall", .run = run, .start = start, .stop = stop, .settle = block_end,
	.begin = begin, .end = end, .copy = copy, .forget = forget, .forked = forked, WINDOWS_INIT,
};

int
wall_window_open(struct wall_window **ret)
{
	const struct collector *cpu = COLLECTOR_WITH(cpu);
	struct wall_window     *w = wall_window_new();
	int                     err;

	if (!w)
		return -ENOMEM;
	if (!cpu || cpu->cpu->open(&w->cpu, true) < 0)
		w->cpu = NULL; /* its status() says why */
	err = windows_open(&windows, &w->window);
	if (err) {
		if (w->cpu)
			cpu->cpu->cancel(w->cpu);
		wall_window_free(w);
		return err;
	}
	*ret = w;
	return 0;
}

static const char *
cpu_why(const struct collector *cpu)
{
	return cpu ? cpu->cpu->status() : "no CPU samples are collected";
}

static void
window_end(struct wall_window *w)
{
	const struct collector *cpu = COLLECTOR_WITH(cpu);

	windows_end(&windows, &w->window);
	w->cpu_why = cpu_why(cpu);
	if (w->cpu)
		cpu->cpu->end(w->cpu);
}

static void
window_free(struct wall_window *w)
{
	if (w->cpu)
		COLLECTOR_WITH(cpu)->cpu->free(w->cpu);
	wall_window_free(w);
}

int
wall_window_close(struct wall_window *w, bool idle, struct profile *ret)
{
	int err;

	window_end(w);
	err = wall_window_profile(w, idle, ret);
	window_free(w);
	return err;
}

/* As a profile, if it ended now. */
static int
window_so_far(const struct wall_window *w, bool idle, struct profile *ret)
{
	const struct collector *cpu = COLLECTOR_WITH(cpu);
	struct wall_window     *now = wall_window_new();
	int                     err = now ? windows_so_far(&windows, &w->window, &now->window) : -ENOMEM;

	if (!now)
		return err;
	if (!err && w->cpu)
		err = cpu->cpu->so_far(w->cpu, &now->cpu);
	now->cpu_why = cpu_why(cpu);
	if (!err)
		err = wall_window_profile(now, idle, ret);
	window_free(now);
	return err;
}

void
wall_window_cancel(struct wall_window *w)
{
	window_end(w);
	window_free(w);
}

/* ---- fork ---- */

/* Descriptors are closed already. */
static void
forked(void)
{
	windows_forked(&windows);
	block_end();
	if (wall.open)
		wall_threads_forget(&wall.threads);
	wall.open = false;
}

/* ---- as a collector ---- */

static int
collect_open(void **ret_window)
{
	struct wall_window *w;
	int                 r = wall_window_open(&w);

	if (!r)
		*ret_window = w;
	return r;
}

static int
collect_close(void *window, const struct collect_params *params, struct product *ret)
{
	ret->type = PRODUCT_PROFILE;
	return wall_window_close(window, params->idle, &ret->profile);
}

static int
collect_so_far(void *window, const struct collect_params *params, struct product *ret)
{
	ret->type = PRODUCT_PROFILE;
	return window_so_far(window, params->idle, &ret->profile);
}

static void
collect_cancel(void *window)
{
	wall_window_cancel(window);
}

static void
less(char *buf, size_t size)
{
	const char *reason = proc_self_missing();

	snprintf(buf, size, "%s%s", reason, *reason ? ": where blocked threads wait cannot be read, they are [no answer]" : "");
}

/* By the name that Go people know it by, at both places where scrapers look for it. */
const struct collector collect_fgprof = {
	.name = "fgprof",
	.path = "/debug/fgprof",
	.description = "where all threads spend time, on a processor or waiting",
	.beside = true,
	.products = PRODUCT_PROFILE,
	.types = { { "samples", "count" }, { "time", "nanoseconds" } },
	.open = collect_open,
	.close = collect_close,
	.so_far = collect_so_far,
	.cancel = collect_cancel,
	.windows = &windows,
	.seconds = 30,
	.takes_idle = true,
	.cannot = "Could not enable wall-clock profiling",
	.status = wall_status,
	.less = less,
};
