/*
 * windows.c - the life of windows: the one engine under CPU profiles, wall-clock profiles and traces.
 *
 * Why the collector's thread is started after its source, and ended before it: that thread reads
 * from the source without asking whether it is there.
 *
 * The fork slot of all collectors that name their windows is here, too.
 *
 * Tests: tests/cpu/test_guest.c, tests/wall/test_wall.c, tests/trace/test_tracer.c.
 */
#include <config.h>

#include "windows.h"

#include "clock.h"
#include "collector.h"
#include "fork.h"

static void
stop(struct windows *all, int err)
{
	our_loop_stop(&all->loop);
	all->stop(err);
}

static int
start(struct windows *all)
{
	int err = all->start();

	if (err == 0)
		err = our_loop_start(&all->loop, all->name, all->run);
	if (err < 0)
		stop(all, err);
	return err;
}

static uint64_t
lost(const struct windows *all)
{
	return all->lost ? all->lost() : 0;
}

static _Atomic uint64_t opened;
static _Atomic unsigned open_now;

uint64_t
windows_opened(unsigned *ret_open)
{
	*ret_open = open_now;
	return opened;
}

int
windows_open(struct windows *all, struct window *w)
{
	int err = 0;

	pthread_mutex_lock(&all->life);
	if (!all->open)
		err = start(all);
	if (err == 0) {
		pthread_mutex_lock(&all->lock);
		all->settle();
		w->lost = lost(all);
		w->time_ns = clock_ns(CLOCK_REALTIME);
		w->begin_ns = clock_ns(CLOCK_MONOTONIC);
		all->begin(w);
		w->next = all->open;
		all->open = w;
		opened++;
		open_now++;
		pthread_mutex_unlock(&all->lock);
	}
	pthread_mutex_unlock(&all->life);
	return err;
}

void
windows_end(struct windows *all, struct window *w)
{
	struct window **link;

	pthread_mutex_lock(&all->life);
	pthread_mutex_lock(&all->lock);
	w->end_ns = clock_ns(CLOCK_MONOTONIC);
	all->settle();
	all->end(w);
	w->lost = lost(all) - w->lost;
	for (link = &all->open; *link != w;)
		link = &(*link)->next;
	*link = w->next;
	open_now--;
	pthread_mutex_unlock(&all->lock);
	if (!all->open)
		stop(all, 0);
	pthread_mutex_unlock(&all->life);
}

int
windows_so_far(struct windows *all, const struct window *w, struct window *copy)
{
	int64_t now;
	int     err;

	pthread_mutex_lock(&all->life);
	pthread_mutex_lock(&all->lock);
	now = clock_ns(CLOCK_MONOTONIC);
	all->settle();
	err = all->copy(w, copy);
	if (err == 0) {
		copy->end_ns = now;
		all->end(copy);
		copy->lost = lost(all) - w->lost;
	}
	pthread_mutex_unlock(&all->lock);
	pthread_mutex_unlock(&all->life);
	return err;
}

void
windows_forked(struct windows *all)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	struct window               *w;

	while ((w = all->open)) {
		all->open = w->next;
		open_now--;
		all->forget(w);
	}
	all->loop.started = false;
	all->life = fresh;
	all->lock = fresh;
}

/* ---- fork: of all collectors but the CPU's, whose slot comes later (fork.h) ---- */

static void
fork_prepare(void)
{
	for (size_t i = 0; i < collector_count; i++)
		if (collectors[i]->windows)
			pthread_mutex_lock(&collectors[i]->windows->lock);
}

static void
fork_parent(void)
{
	for (size_t i = collector_count; i-- > 0;)
		if (collectors[i]->windows)
			pthread_mutex_unlock(&collectors[i]->windows->lock);
}

static void
fork_child(void)
{
	for (size_t i = collector_count; i-- > 0;)
		if (collectors[i]->windows)
			collectors[i]->windows->forked();
}

FORK_SLOT(FORK_WINDOWS, fork_prepare, fork_parent, fork_child);
