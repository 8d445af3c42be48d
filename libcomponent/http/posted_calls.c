/*
 * posted_calls.c - how other threads reach the server's: a list of calls, and what wakes its loop.
 *
 *     post():  lock ── list ── is the socket ours? ── empty datagram ── unlock
 *                                                          |
 *     the server's thread:  epoll ── httpd_on_wake() ── takes the list ── fn, fn, ...
 *
 * The descriptors stand in a table that is the daemon's: another thread of it may close the
 * number between the look and the write, and have it for its own file at once.  No system call
 * looks and writes in one, so what is written is nothing: a pair of datagram sockets, and
 * datagrams of no bytes.  A file, a pipe, a stream socket, a terminal and an eventfd take no
 * notice of that.
 *
 * What a stranger would get wrong:
 * - write(2), not send(2): it runs on threads of the daemon, and a seccomp filter may end those
 *   for a call that they do not make anyway.
 * - But write() to a stream socket whose other end is closed raises SIGPIPE, even of no bytes:
 *   it is blocked meanwhile, as all signals are, and taken back.
 * - The server's own thread makes the pair anew when it was lost (loop_again()), and closes what
 *   is left: under the lock, between nobody's look and write.  A forked child takes no lock: who
 *   held it is not there.
 * - Not an eventfd: that cannot be told from the daemon's.  evthread_use_pthreads() and
 *   event_active() belong to the whole process, which is not ours.
 *
 * What remains: a datagram or record socket of the daemon's that gets the number within that
 * microsecond sends an empty datagram.
 *
 * Tests: tests/http/test_posted_calls.c, tests/serve/start_stop.t.
 */
#include <config.h>

#include "posted_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "our_mask.h"
#include "our_table.h"
#include "server.h"


#define LOST_SECONDS 5 /* the loop finds within one that its descriptors were closed */

/* ---- the pair ---- */

int
httpd_wake_open(struct httpd *h)
{
	sigset_t mask;
	int      fds[2] = { -1, -1 }, r = 0;

	pthread_mutex_lock(&h->lock);
	our_fd_hold(&mask); /* a child must know both or have none */
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		r = -errno;
	for (int i = 0; i < 2 && fds[i] >= 0; i++) {
		int fd = fd_keep(fds[i]);

		if (fd < 0)
			r = fd;
		else
			our_fd_keep(&h->fds[HTTPD_FD_WAKE + i], fd);
	}
	our_fd_release(&mask);
	pthread_mutex_unlock(&h->lock);
	return r;
}

/* Under the lock, as who wakes looks and then writes. */
void
httpd_wake_close(struct httpd *h)
{
	pthread_mutex_lock(&h->lock);
	for (int i = 0; i < 2; i++)
		our_fd_kept_close(&h->fds[HTTPD_FD_WAKE + i]);
	pthread_mutex_unlock(&h->lock);
}

/* The copy in this thread's table. */
static const struct our_fd_kept *
waker(const struct httpd *h)
{
	return our_table_is_apart() && !our_table_is_own() ? &h->shown[0] : &h->fds[HTTPD_FD_WAKER];
}

bool
httpd_wake_is_ours(const struct httpd *h)
{
	return our_fd_is_kept(waker(h), NULL);
}

/* Under the lock, with all signals blocked.  When its queue is full the loop is about to wake
 * anyway.  Bare, as write(3) is a cancellation point. */
static bool
wake(struct httpd *h)
{
	static const struct timespec at_once;
	uint64_t                     pipe = OUR_MASK_BIT(SIGPIPE);

	if (!httpd_wake_is_ours(h))
		return false;
	if (syscall(SYS_write, waker(h)->fd, "", 0) == 0 || errno == EAGAIN)
		return true;
	if (errno == EPIPE)
		syscall(SYS_rt_sigtimedwait, &pipe, NULL, &at_once, OUR_MASK_BYTES);
	return false;
}

/* ---- calls ---- */

bool
httpd_wake(struct httpd *h)
{
	bool woken;

	pthread_mutex_lock(&h->lock);
	woken = wake(h);
	pthread_mutex_unlock(&h->lock);
	return woken;
}

void
httpd_wake_posted(struct httpd *h)
{
	pthread_mutex_lock(&h->lock);
	if (h->posted)
		wake(h);
	pthread_mutex_unlock(&h->lock);
}

static void
post(struct httpd *h, struct httpd_posted *at)
{
	sigset_t mask;
	bool     first;

	our_mask_block(&mask);
	pthread_mutex_lock(&h->lock);
	first = !h->posted;
	*h->posted_tail = at;
	h->posted_tail = &at->next;
	pthread_cond_broadcast(&h->ready_cond); /* for run_lost() */
	if (first) /* else it has been woken, and has not come so far */
		wake(h); /* or the loop finds out within a second that it is lost */
	pthread_mutex_unlock(&h->lock);
	our_mask_restore(&mask);
}

void
httpd_post_at(struct httpd *h, struct httpd_posted *at, httpd_fn *fn, void *arg)
{
	*at = (struct httpd_posted){ NULL, fn, arg, false };
	post(h, at);
}

int
httpd_post(struct httpd *h, httpd_fn *fn, void *arg)
{
	struct httpd_posted *at = malloc(sizeof(*at));

	if (!at)
		return -ENOMEM;
	*at = (struct httpd_posted){ NULL, fn, arg, true };
	post(h, at);
	return 0;
}

/* Takes a call back that was never run; false: it runs or has run. */
static bool
take_back(struct httpd *h, struct httpd_posted *at)
{
	struct httpd_posted **p;
	bool                  found;

	pthread_mutex_lock(&h->lock);
	for (p = &h->posted; *p && *p != at; p = &(*p)->next)
		;
	found = *p != NULL;
	if (found) {
		*p = at->next;
		if (!*p)
			h->posted_tail = p;
	}
	pthread_mutex_unlock(&h->lock);
	return found;
}

void
httpd_posted_run(struct httpd *h)
{
	struct httpd_posted *list, *next;
	bool                 malloced;

	pthread_mutex_lock(&h->lock);
	list = h->posted;
	h->posted = NULL;
	h->posted_tail = &h->posted;
	pthread_mutex_unlock(&h->lock);
	for (; list; list = next) {
		next = list->next;
		malloced = list->malloced;
		list->fn(list->arg); /* who lent the memory may use it again, or be gone */
		if (malloced)
			free(list);
	}
}

/* One datagram, before the list is taken: who comes after that sends the next.  No byte is taken
 * either, from what may be the daemon's by now. */
void
httpd_on_wake(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	recv(fd, NULL, 0, MSG_DONTWAIT);
	httpd_posted_run(arg);
}

/* ---- calls that are waited for ---- */

void
httpd_call_init(struct httpd_call *c, struct httpd *h)
{
	memset(c, 0, sizeof(*c));
	c->h = h;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->cond, NULL);
}

void
httpd_call_finish(struct httpd_call *c, int r)
{
	pthread_mutex_lock(&c->lock);
	c->r = r;
	c->done = true;
	pthread_cond_signal(&c->cond);
	pthread_mutex_unlock(&c->lock);
}

static bool
can_be_woken(struct httpd *h)
{
	bool can;

	pthread_mutex_lock(&h->lock);
	can = httpd_wake_is_ours(h);
	pthread_mutex_unlock(&h->lock);
	return can;
}

int
httpd_call_run(struct httpd_call *c, httpd_fn *fn)
{
	struct timespec until;
	int             r, lost = 0;
	bool            late;

	httpd_post_at(c->h, &c->posted, fn, c);
	pthread_mutex_lock(&c->lock);
	while (!c->done) {
		until = clock_timespec(clock_ns(CLOCK_REALTIME) + CLOCK_NS_PER_S);
		r = pthread_cond_timedwait(&c->cond, &c->lock, &until);
		late = c->until_ns && clock_ns(CLOCK_MONOTONIC) >= c->until_ns;
		if (!late && (r != ETIMEDOUT || can_be_woken(c->h) || ++lost < LOST_SECONDS))
			continue;
		pthread_mutex_unlock(&c->lock);
		if (take_back(c->h, &c->posted))
			return late ? -ETIMEDOUT : -EBADF; /* its mutex has nothing to free */
		pthread_mutex_lock(&c->lock);
	}
	r = c->r;
	pthread_mutex_unlock(&c->lock);
	pthread_cond_destroy(&c->cond);
	pthread_mutex_destroy(&c->lock);
	return r;
}
