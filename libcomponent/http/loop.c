/*
 * loop.c - the server's loop, in somebody else's table of descriptors.
 *
 *     poll(epoll) --> are all still ours?  yes: libevent, without waiting
 *                                          no:  everything anew, at the same addresses
 *
 * A daemon may close every descriptor it does not know (closefrom()) and have the numbers
 * for its own files at once.  libevent's own wait would go on with the number of its
 * epoll: setuid(), which interrupts every thread, is enough for it to take the daemon's
 * events away.  Here that number is only polled, which takes nothing from anybody, and
 * whose it is gets asked before anything is read, written or accepted.
 *
 * What a stranger would get wrong:
 * - Between the question and the calls behind it another thread may still close: that is
 *   some microseconds in place of for ever.
 * - When one is lost nothing may be freed either: event_free() would take a number out of
 *   an epoll that may be the daemon's by now.  What is still ours is closed; what libevent has
 *   allocated stays behind.
 * - All epolls have one inode.  Ours holds a mark, the socket that wakes it, and is asked for that.
 * - A socket that is closed while others keep it open elsewhere (systemd's, one that a child
 *   has) cannot be bound again.  Then the server is lost, and says so.
 * - Who polls does not learn that a number was closed.  So it looks every second.
 *
 * The agent's threads have a table of their own where that can be had (our_table.h), which no daemon closes.  Others have
 * not: the daemon's log is written and its profiles are handed over from these threads by the daemon's numbers.
 *
 * Tests: tests/serve/start_stop.t, tests/http/test_posted_calls.c.
 */
#include <config.h>

#include "server.h"

#include <errno.h>
#include <poll.h>
#include <sys/time.h>

#include "clock.h"
#include "posted_calls.h"

#define LOOK_MS 1000 /* at least so often: are the descriptors ours? */

/* Its number is something else now. */
static bool
epoll_is_lost(struct httpd *h)
{
	int epoll = h->fds[HTTPD_FD_EPOLL].fd;

	if (epoll < 0)
		return false;
	return !httpd_wake_is_ours(h) || (!httpd_epoll_is_marked(epoll, h->fds[HTTPD_FD_WAKER].fd) &&
		(errno == ENOENT || errno == EINVAL || errno == EBADF || errno == EPERM));
}

static bool
is_ours(const struct our_fd_kept *k)
{
	return k->fd < 0 || our_fd_is_kept(k, NULL);
}

static bool
all_are_ours(struct httpd *h)
{
	struct httpd_conn *c;
	bool               all = !epoll_is_lost(h);

	for (int i = HTTPD_FD_EPOLL + 1; i < HTTPD_FDS; i++)
		all = all && is_ours(&h->fds[i]);
	for (size_t i = 0; all && (c = httpd_conn_at(h, i)); i++)
		all = is_ours(&c->fd);
	return all;
}

static int
earliest(const struct event_base *base, const struct event *e, void *arg)
{
	struct timeval at, *first = arg;

	(void)base;
	if (event_pending(e, EV_TIMEOUT, &at) && timercmp(&at, first, <))
		*first = at;
	return 0;
}

/* Until the first timer is due, or the next look is.  libevent walks a table as long as its highest descriptor for that. */
static int64_t
first_due_ns(struct httpd *h)
{
	struct timeval now, first, left;

	gettimeofday(&now, NULL);
	first = now;
	first.tv_sec += LOOK_MS / 1000;
	event_base_foreach_event(h->base, earliest, &first);
	if (!timercmp(&first, &now, >))
		return 0;
	timersub(&first, &now, &left);
	return left.tv_sec * CLOCK_NS_PER_S + left.tv_usec * INT64_C(1000);
}

int
httpd_timer_set(struct httpd *h, struct event *timer, unsigned ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = (long)(ms % 1000) * 1000 };
	int64_t        due_ns = clock_ns(CLOCK_MONOTONIC) + ms * INT64_C(1000000);

	if (due_ns < h->due_ns)
		h->due_ns = due_ns;
	return evtimer_add(timer, &tv);
}

/* At least one: the clock of the timers may have been set. */
static int
wait_ms(struct httpd *h)
{
	int64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (h->due_ns <= now_ns)
		h->due_ns = now_ns + first_due_ns(h);
	return (int)((h->due_ns - now_ns) / 1000000) + 1;
}

int
httpd_loop_run(struct httpd *h)
{
	/* NONBLOCK alone would not come back while there is something to do. */
	const int     round = EVLOOP_ONCE | EVLOOP_NONBLOCK | EVLOOP_NO_EXIT_ON_EMPTY;
	struct pollfd wait = { .fd = h->fds[HTTPD_FD_EPOLL].fd, .events = POLLIN };

	if (wait.fd < 0) /* it could not be told from the daemon's */
		return event_base_loop(h->base, EVLOOP_NO_EXIT_ON_EMPTY) < 0 ? -EBADF : 0;
	for (;;) {
		poll(&wait, 1, wait_ms(h));
		httpd_wake_posted(h);
		if (h->abandoned || !all_are_ours(h))
			return -EBADF;
		if (h->options.on_look)
			h->options.on_look(h->options.arg);
		if (event_base_loop(h->base, round) < 0)
			return -EBADF;
		if (event_base_got_break(h->base))
			return 0;
	}
}
