/*
 * cpu.c - the CPU profile: any number of windows on one stream of samples.
 *
 *     thread's CPU timer --> handler --> ring --> component-cpu --> every open window
 *     cpu_timers.c     cpu_signal.c  cpu_ring.c  cpu_engine.c    here, cpu_window.c
 *
 * The first window starts the sampler, the last one ends it.
 *
 * What a stranger would get wrong:
 * - Before a window is opened or closed the ring is emptied into the others, so
 *   that a sample belongs to exactly the windows that were open when it was taken.
 * - A signal comes at a tick of the kernel's that finds its thread running, so on a busy
 *   machine the last of a window come after its end.  How many is in its comments.
 * - Periods that no signal told of (the ring was full, the thread blocks the signal, or
 *   came and went between two looks) are in the profile as [lost samples]: a thin profile
 *   must not look like a quiet program.
 *
 * Tests: tests/test_cpu.c, tests/test_cpu_guest.c, tests/test_cpu_limits.c, tests/test_cpu_threads.c.
 */
#include <config.h>

#include "cpu.h"

#include <errno.h>
#include <stdbool.h>
#include <time.h>

#include "clock.h"
#include "collector.h"
#include "cpu_parts.h"
#include "cpu_ring.h"
#include "cpu_signal.h"
#include "signal_calls.h"

int
cpu_set_hz(unsigned hz)
{
	if (hz > CPU_HZ_MAX)
		return -EINVAL;
	atomic_store(&cpu_engine.hz, hz ? hz : CPU_HZ);
	return 0;
}

void
cpu_keep_signal(void)
{
	signal_calls_watch(cpu_signal_reserve);
}

static int
window_open(struct cpu_window **ret, bool by_thread)
{
	struct cpu_window *w = NULL;
	int                err = 0;

	w = cpu_window_new();
	if (!w) {
		if (!atomic_load(&cpu_engine.running))
			atomic_store(&cpu_engine.status, cpu_status_of_start(-ENOMEM));
		return -ENOMEM;
	}
	w->by_thread = by_thread;
	pthread_mutex_lock(&cpu_engine.life);
	if (!cpu_engine.windows)
		err = cpu_engine_start();
	if (err == 0) {
		pthread_mutex_lock(&cpu_engine.lock);
		cpu_engine_settle();
		w->ring_lost_before = cpu_ring_lost();
		w->unseen_before_ns = cpu_timers_unseen(true);
		w->period_ns = cpu_engine.period_ns;
		w->time_ns = clock_ns(CLOCK_REALTIME);
		w->begin_ns = clock_ns(CLOCK_MONOTONIC);
		w->next = cpu_engine.windows;
		cpu_engine.windows = w;
		cpu_engine_note();
		pthread_mutex_unlock(&cpu_engine.lock);
		*ret = w;
		w = NULL; /* the caller's now */
	}
	pthread_mutex_unlock(&cpu_engine.life);
	if (w)
		cpu_window_free(w);
	return err;
}

int
cpu_window_open(struct cpu_window **ret)
{
	return window_open(ret, false);
}

int
cpu_window_open_by_thread(struct cpu_window **ret)
{
	return window_open(ret, true);
}

/* ---- the end of a window ---- */

/* Takes the window out; the last one stops the engine. */
static void
window_end(struct cpu_window *w, struct cpu_facts *ret)
{
	struct cpu_window **link;
	int64_t             unseen_ns;

	pthread_mutex_lock(&cpu_engine.life);
	pthread_mutex_lock(&cpu_engine.lock);
	w->under_way = cpu_engine_settle();
	unseen_ns = cpu_timers_unseen(false) - w->unseen_before_ns;
	w->unseen = unseen_ns > 0 ? (uint64_t)(unseen_ns / cpu_engine.period_ns) : 0;
	w->lost += w->unseen;
	w->ring_full = cpu_ring_lost() - w->ring_lost_before;
	w->lost += w->ring_full;
	for (link = &cpu_engine.windows; *link != w;)
		link = &(*link)->next;
	*link = w->next;
	ret->signal_number = cpu_engine.signal_number;
	ret->no_slot_why = cpu_engine.state.why == EAGAIN ? "RLIMIT_SIGPENDING leaves no timers for them"  : cpu_status_refused;
	pthread_mutex_unlock(&cpu_engine.lock);
	if (!cpu_engine.windows)
		cpu_engine_stop();
	pthread_mutex_unlock(&cpu_engine.life);
}

int
cpu_window_close(struct cpu_window *w, struct profile *ret)
{
	int64_t          end_ns = clock_ns(CLOCK_MONOTONIC);
	struct cpu_facts facts;
	int              err;

	window_end(w, &facts);
	err = cpu_window_profile(w, end_ns, &facts, ret);
	cpu_window_free(w);
	return err;
}

void
cpu_window_end(struct cpu_window *w)
{
	struct cpu_facts facts;

	window_end(w, &facts);
}

void
cpu_window_cancel(struct cpu_window *w)
{
	cpu_window_end(w);
	cpu_window_free(w);
}

/* ---- as a collector ---- */

static int
collect_open(void **ret_window)
{
	struct cpu_window *w;
	int                r = cpu_window_open(&w);

	if (!r)
		*ret_window = w;
	return r;
}

static int
collect_close(void *window, struct product *ret)
{
	ret->type = PRODUCT_PROFILE;
	return cpu_window_close(window, &ret->profile);
}

static void
collect_cancel(void *window)
{
	cpu_window_cancel(window);
}

static int
collect_start(void)
{
	cpu_keep_signal();
	return 0;
}

const struct collector collect_profile = {
	.name = "profile",
	.description = "CPU profile. You can specify the duration in the seconds GET parameter. After you get the profile "
		"file, use the go tool pprof command to investigate the profile.",
	.products = PRODUCT_PROFILE,
	.open = collect_open,
	.close = collect_close,
	.cancel = collect_cancel,
	.seconds = 30,
	.cannot = "Could not enable CPU profiling",
	.status = cpu_status,
	.less = cpu_status_blocked,
	.start = collect_start,
	.forked = cpu_forked,
};
