/*
 * fork.c - a child of fork() holds no descriptor of ours and drives nothing.
 *
 * The descriptors of a loop are shared with the child down to their state: a
 * child that took an event, or armed the timer, would take it from its parent.  So
 * the child closes them by number, and component_dispatch() there answers -EPERM,
 * which it knows by the process id, for children that pthread_atfork() does not
 * see too (clone, _Fork).
 *
 * One child may go on: daemon(3) between component_parse() and component_start(),
 * when nothing runs yet.  component_start() then makes the loop anew.
 *
 * What surprises: the locks are held across fork(), so that the child finds the
 * lists whole and can free them.  Nothing of ours calls out while it holds one.
 *
 * Tests: tests/lifecycle/test_fork.c, tests/lifecycle/signals.t.
 */
#include <config.h>

#include "fork.h"
#include "life.h"

#include <errno.h>
#include <pthread.h>

#include "our_lock.h"

static pthread_mutex_t   live_lock = PTHREAD_MUTEX_INITIALIZER;
static struct component *live;

static void
on_prepare(void)
{
	pthread_mutex_lock(&live_lock);
	for (struct component *c = live; c; c = c->next_live) {
		pthread_mutex_lock(&c->hold_lock);
		loop_fork_prepare(&c->loop);
	}
}

static void
on_parent(void)
{
	for (struct component *c = live; c; c = c->next_live) {
		loop_fork_parent(&c->loop);
		pthread_mutex_unlock(&c->hold_lock);
	}
	pthread_mutex_unlock(&live_lock);
}

static void
on_child(void)
{
	for (struct component *c = live; c; c = c->next_live) {
		signals_fork_child(c);
		log_fork_child(&c->log);
		loop_fork_child(&c->loop);
		pthread_mutex_unlock(&c->hold_lock);
	}
	pthread_mutex_unlock(&live_lock);
}

FORK_SLOT(FORK_LIFE, on_prepare, on_parent, on_child);

void
fork_add(struct component *c)
{
	sigset_t mask;

	our_lock_take(&live_lock, &mask);
	c->next_live = live;
	live = c;
	our_lock_release(&live_lock, &mask);
}

void
fork_remove(struct component *c)
{
	sigset_t mask;

	our_lock_take(&live_lock, &mask);
	for (struct component **at = &live; *at; at = &(*at)->next_live) {
		if (*at == c) {
			*at = c->next_live;
			break;
		}
	}
	our_lock_release(&live_lock, &mask);
}
