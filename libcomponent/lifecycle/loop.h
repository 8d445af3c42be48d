/*
 * loop.h - one epoll descriptor: watches, timers, and posts from other threads.
 */
#ifndef LIFECYCLE_LOOP_H
#define LIFECYCLE_LOOP_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <component/component.h>

#include "due_heap.h"

/* Descriptors looked at in one dispatch; the rest wait for the next one, so
 * that a busy socket cannot keep the daemon's own loop from its turn. */
#define LOOP_EVENTS_MAX 64

struct loop_post {
	struct loop_post *next;
	component_fn     *fn;
	void             *arg;
};

struct loop {
	struct component *owner; /* handed to every callback */
	int               epoll_fd;
	int               wake_fd;
	int               timer_fd;
	bool              dispatching;

	struct component_watch **watches; /* free slots are NULL */
	uint32_t                 watch_slots;
	uint32_t                 generation; /* tells a slot's users apart */

	struct due_heap          due; /* timers that will fire */
	struct component_timer  *timers; /* all of them, fired ones too */
	int64_t                  now_ns; /* of this dispatch; 0 outside */
	int64_t                  armed_ns; /* what timer_fd is set to; 0: off */

	pthread_mutex_t    post_lock;
	struct loop_post  *posts;
	struct loop_post **posts_end;
};

/* Both return 0 or a negative errno. */
int loop_init(struct loop *l, struct component *owner);
int loop_dispatch(struct loop *l);

/* Makes the descriptor readable; any thread, and signal handlers. */
void loop_wake(struct loop *l);

/* Closes and frees everything; posts that did not run are dropped. */
void loop_close(struct loop *l);

/* Closes its descriptors: whose state a child shares with its parent, so it may do no more. */
void loop_leave(struct loop *l);

/* Around fork(): what the child must find consistent, then what it must close. */
void loop_fork_prepare(struct loop *l);
void loop_fork_parent(struct loop *l);
void loop_fork_child(struct loop *l);
/* In a child: descriptors of its own, with the watches and timers as they were.
 * 0 or a negative errno. */
int loop_remake(struct loop *l);

/* timer.c: what is due now; timer_fd set to the soonest (while timers run, their
 * end does that); all freed. */
void loop_timers_run(struct loop *l);
void loop_timers_arm(struct loop *l);
void loop_timers_free(struct loop *l);

#endif
