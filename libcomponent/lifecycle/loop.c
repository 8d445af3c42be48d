/*
 * loop.c - one epoll descriptor: watches, timers, and posts from other threads.
 *
 *     watches ------------------+
 *     timers --> timer_fd ------+--> epoll_fd --> loop_dispatch()
 *     posts  --> wake_fd  ------+
 *
 * Everything hangs on one descriptor, which a daemon can put into whatever loop
 * it has; loop_dispatch() does what is due and never blocks.  It does a bounded
 * amount: what a callback posts, or a timer it adds, is for the next dispatch.
 *
 * What surprises: callbacks may remove any watch or timer, their own too.  An
 * event names its watch by slot and generation, never by address, so one that is
 * still queued for a removed watch finds nothing.
 *
 * Watches and timers belong to the thread that dispatches; component_post() and
 * loop_wake() are for the others.
 *
 * Why not libevent: its base is not one descriptor that another loop can watch
 * once timers are in play, and it cannot be left unused by a forked child.
 *
 * Tests: tests/lifecycle/test_loop.c.
 */
#include <config.h>

#include "life.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "fd.h"
#include "our_lock.h"

/* Slots that stand for our own descriptors. */
#define SLOT_WAKE  UINT32_MAX
#define SLOT_TIMER (UINT32_MAX - 1)
#define SLOTS_MAX  (1u << 24) /* far above any RLIMIT_NOFILE worth having */

struct component_watch {
	struct loop     *loop;
	component_fd_fn *fn;
	void            *arg;
	int              fd;
	uint32_t         events;
	uint32_t         slot;
	uint32_t         generation;
};

static int
own_add(struct loop *l, int fd, uint32_t slot)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = slot };

	return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* On failure some may be open: the caller closes. */
static int
open_all(struct loop *l)
{
	int result;

	result = l->epoll_fd = fd_keep(epoll_create1(EPOLL_CLOEXEC));
	if (result < 0)
		return result;
	result = l->wake_fd = fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (result < 0)
		return result;
	result = l->timer_fd = fd_keep(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	if (result < 0)
		return result;
	result = own_add(l, l->wake_fd, SLOT_WAKE);
	if (result < 0)
		return result;
	return own_add(l, l->timer_fd, SLOT_TIMER);
}

int
loop_init(struct loop *l, struct component *owner)
{
	int result;

	*l = (struct loop) { .owner = owner, .epoll_fd = -1, .wake_fd = -1, .timer_fd = -1 };
	l->posts_end = &l->posts;
	pthread_mutex_init(&l->post_lock, NULL);
	result = open_all(l);
	if (result < 0)
		loop_close(l);
	return result;
}

void
loop_wake(struct loop *l)
{
	int      saved = errno;
	uint64_t one = 1;
	int      fd = l->wake_fd;

	/* EAGAIN means that the counter is full, so the loop is awake anyway. */
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		errno = saved;
	errno = saved;
}

/* ---- watches ---- */

static int
watch_slot(struct loop *l, uint32_t *ret)
{
	struct component_watch **grown;
	uint32_t                 slots;

	for (uint32_t i = 0; i < l->watch_slots; i++) {
		if (!l->watches[i]) {
			*ret = i;
			return 0;
		}
	}
	if (l->watch_slots >= SLOTS_MAX)
		return -ENOSPC;
	slots = l->watch_slots ? 2 * l->watch_slots : 8;
	grown = realloc(l->watches, slots * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + l->watch_slots, 0, (slots - l->watch_slots) * sizeof(*grown));
	*ret = l->watch_slots;
	l->watches = grown;
	l->watch_slots = slots;
	return 0;
}

static uint64_t
watch_key(const struct component_watch *w)
{
	return (uint64_t)w->generation << 32 | w->slot;
}

int
component_watch_add(struct component *c, int fd, uint32_t events, component_fd_fn *fn, void *arg,
	struct component_watch **ret)
{
	struct loop            *l = &c->loop;
	struct component_watch *w = NULL;
	struct epoll_event      event = { .events = events };
	uint32_t                slot = 0;
	int                     result;

	if (fd < 0 || !fn)
		return -EINVAL;
	result = watch_slot(l, &slot);
	if (result < 0)
		goto out;
	w = calloc(1, sizeof(*w));
	if (!w) {
		result = -ENOMEM;
		goto out;
	}
	*w = (struct component_watch) { l, fn, arg, fd, events, slot, ++l->generation };
	event.data.u64 = watch_key(w);
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		result = -errno;
		goto out;
	}
	l->watches[slot] = w;
	if (ret)
		*ret = w;
	w = NULL; /* the loop has it now */
out:
	free(w);
	return result;
}

void
component_watch_remove(struct component_watch *w)
{
	if (!w)
		return;
	if (w->loop->epoll_fd >= 0)
		epoll_ctl(w->loop->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	w->loop->watches[w->slot] = NULL;
	free(w);
}

static void
watch_run(struct loop *l, const struct epoll_event *event)
{
	uint32_t                slot = (uint32_t)event->data.u64;
	uint32_t                generation = (uint32_t)(event->data.u64 >> 32);
	struct component_watch *w;

	if (slot >= l->watch_slots)
		return;
	w = l->watches[slot];
	if (!w || w->generation != generation)
		return; /* removed by a callback before it */
	w->fn(l->owner, w->fd, event->events, w->arg);
}

/* ---- posts ---- */

int
component_post(struct component *c, component_fn *fn, void *arg)
{
	sigset_t          mask;
	struct loop      *l = &c->loop;
	struct loop_post *post;

	if (life_in_child(c))
		return -EPERM;
	if (!fn)
		return -EINVAL;
	post = malloc(sizeof(*post));
	if (!post)
		return -ENOMEM;
	*post = (struct loop_post) { NULL, fn, arg };
	our_lock_take(&l->post_lock, &mask);
	*l->posts_end = post;
	l->posts_end = &post->next;
	/* Within the lock: what is posted may lead to the end of the component, which takes it once more. */
	if (l->posts == post)
		loop_wake(l);
	our_lock_release(&l->post_lock, &mask);
	return 0;
}

/* All that were posted; drop: they are freed and not called. */
static void
posts_run(struct loop *l, bool drop)
{
	sigset_t          mask;
	struct loop_post *post, *next;

	our_lock_take(&l->post_lock, &mask);
	post = l->posts;
	l->posts = NULL;
	l->posts_end = &l->posts;
	our_lock_release(&l->post_lock, &mask);
	for (; post; post = next) {
		next = post->next;
		if (!drop)
			post->fn(l->owner, post->arg);
		free(post);
	}
}

/* ---- all together ---- */

static void
drain(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

int
loop_dispatch(struct loop *l)
{
	struct epoll_event events[LOOP_EVENTS_MAX];
	int                count;

	if (l->dispatching)
		return -EBUSY;
	count = epoll_wait(l->epoll_fd, events, LOOP_EVENTS_MAX, 0);
	if (count < 0)
		return errno == EINTR ? 0 : -errno;
	l->dispatching = true;
	for (int i = 0; i < count; i++) {
		uint32_t slot = (uint32_t)events[i].data.u64;

		/* Emptied before the work is looked for, so no wake is lost. */
		if (slot == SLOT_WAKE) {
			drain(l->wake_fd);
		} else if (slot == SLOT_TIMER) {
			drain(l->timer_fd);
			l->armed_ns = 0;
		}
	}
	posts_run(l, false);
	loop_timers_run(l);
	for (int i = 0; i < count; i++)
		watch_run(l, &events[i]);
	l->dispatching = false;
	return 0;
}

void
loop_close(struct loop *l)
{
	loop_timers_free(l);
	for (uint32_t i = 0; i < l->watch_slots; i++)
		component_watch_remove(l->watches[i]);
	posts_run(l, true);
	free(l->watches);
	l->watches = NULL;
	l->watch_slots = 0;
	loop_leave(l);
	pthread_mutex_destroy(&l->post_lock);
}

void
loop_fork_prepare(struct loop *l)
{
	pthread_mutex_lock(&l->post_lock);
}

void
loop_fork_parent(struct loop *l)
{
	pthread_mutex_unlock(&l->post_lock);
}

void
loop_leave(struct loop *l)
{
	fd_close(&l->epoll_fd);
	fd_close(&l->wake_fd);
	fd_close(&l->timer_fd);
}

void
loop_fork_child(struct loop *l)
{
	loop_leave(l);
	pthread_mutex_unlock(&l->post_lock);
}

int
loop_remake(struct loop *l)
{
	int result;

	loop_leave(l);
	result = open_all(l);
	for (uint32_t i = 0; i < l->watch_slots && result >= 0; i++) {
		struct component_watch *w = l->watches[i];
		struct epoll_event      event = { .events = w ? w->events : 0 };

		if (!w)
			continue;
		event.data.u64 = watch_key(w);
		if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, w->fd, &event) < 0)
			result = -errno;
	}
	if (result < 0)
		return result;
	l->armed_ns = 0;
	loop_timers_arm(l);
	if (l->posts)
		loop_wake(l);
	return 0;
}
