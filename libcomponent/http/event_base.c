/*
 * event_base.c - libevent's event_base as a guest may have one: no surprise
 * exits, and its descriptors known by number.
 *
 * event_base_new() opens an epoll descriptor and a pipe and tells nobody their
 * numbers, yet a forked child has to close them without calling libevent (it
 * would tear down the parent's epoll set) and without closing anything of the
 * daemon's, whose threads open descriptors all the while.  So each is proven:
 *
 *   epoll  the one that knows an eventfd of ours after event_add(), asked by
 *          epoll_ctl(EPOLL_CTL_MOD), which changes nothing anywhere else;
 *   pipe   the one pipe that was not there before, with both ends here and
 *          marked non-blocking and close-on-exec.  When the daemon has made such
 *          a pipe at the same moment there are two: try again.
 *
 * New descriptors have the lowest free numbers, so each number up to the highest of those
 * that were free before is asked; /proc is not needed, which would be most of a server's
 * start.
 *
 * What a stranger would get wrong:
 * - libevent calls exit() when that pipe cannot be made (event_sock_err in
 *   evsig_init_), so a process short of descriptors must never get so far.
 * - It lets the environment choose its mechanism (EVENT_NOEPOLL) unless told not
 *   to, and makes one more descriptor when the daemon has called
 *   evthread_use_pthreads(), unless told that one thread uses this base.
 * - A daemon may run with 0, 1 or 2 closed; what lands there gets written to.
 *
 * Tests: tests/http/test_event_base.c, tests/serve/fork.t.
 */
#include <config.h>

#include "event_base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"

#define SPARE_FDS 16 /* must be free before event_base_new(): it takes 3, other threads some */
#define TRIES     16 /* a daemon that makes pipes without pause loses this race rarely */

/* Are so many descriptors left?  Takes 0 to 2 for as long as the caller wants.  *ret_highest: of those that are free,
 * where ours are (fd.h). */
static int
spare_fds_check(int stdio[3], int *ret_highest)
{
	int    fds[SPARE_FDS], r = 0;
	size_t n;

	stdio[0] = stdio[1] = stdio[2] = -1;
	*ret_highest = 0;
	for (n = 0; n < SPARE_FDS; n++) {
		fds[n] = open("/", O_PATH | O_CLOEXEC);
		if (fds[n] > STDERR_FILENO)
			fds[n] = fd_move(fds[n], fd_floor);
		if (fds[n] < 0) {
			r = -errno;
			break;
		}
		if (fds[n] > *ret_highest)
			*ret_highest = fds[n];
	}
	while (n-- > 0) {
		if (r == 0 && fds[n] <= STDERR_FILENO)
			stdio[fds[n]] = fds[n];
		else
			close(fds[n]);
	}
	return r;
}

static void
stdio_give_back(int stdio[3])
{
	for (int i = 0; i < 3; i++)
		if (stdio[i] >= 0)
			close(stdio[i]);
}

/* What pipe has a number: its inode, or 0. */
static ino_t
pipe_at(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) ? st.st_ino : 0;
}

static bool
pipes_have(const ino_t *pipes, int count, ino_t ino)
{
	for (int i = 0; i < count; i++)
		if (pipes[i] == ino)
			return true;
	return false;
}

static bool
is_internal_pipe(int fd)
{
	int status = fcntl(fd, F_GETFL), flags = fcntl(fd, F_GETFD);

	return status >= 0 && flags >= 0 && (status & O_NONBLOCK) && (flags & FD_CLOEXEC);
}

/* 0: fds[0] and [1] are the ends, untouched when there is none; -EAGAIN: not certain. */
static int
pipe_find(const ino_t *before, int first, int count, int fds[2])
{
	size_t found = 0;
	ino_t  ino = 0, now;

	for (int fd = first; fd < count; fd++) {
		now = pipe_at(fd);
		if (!now || now == before[fd] || pipes_have(before, count, now) || !is_internal_pipe(fd))
			continue;
		if (found == 2 || (found == 1 && now != ino))
			return -EAGAIN;
		ino = now;
		fds[found++] = fd;
	}
	return found == 1 ? -EAGAIN : 0;
}

static void
on_probe(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

/* The epoll that knows what we have just added, or -1. */
static int
epoll_find(struct event_base *base, int count)
{
	struct epoll_event same = { .events = EPOLLIN };
	struct event      *probe = NULL;
	int                fd = fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), found = -1;

	if (fd < 0)
		return -1;
	same.data.fd = fd;
	probe = event_new(base, fd, EV_READ | EV_PERSIST, on_probe, NULL);
	if (!probe || event_add(probe, NULL))
		goto out;
	/* It is most likely a little below. */
	for (int i = 0; i < count && found < 0; i++) {
		int at = (fd % count + count - i) % count;

		if (epoll_ctl(at, EPOLL_CTL_MOD, fd, &same) == 0)
			found = at;
	}
	event_del(probe);
out:
	if (probe)
		event_free(probe);
	close(fd);
	return found;
}

/* Without an event that is waited for, and with data that libevent passes over. */
int
httpd_epoll_mark(int epoll, int mark)
{
	struct epoll_event none = { .events = EPOLLET, .data.fd = -1 };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, mark, &none) < 0 ? -errno : 0;
}

bool
httpd_epoll_is_marked(int epoll, int mark)
{
	struct epoll_event none = { .events = EPOLLET, .data.fd = -1 };

	return epoll_ctl(epoll, EPOLL_CTL_MOD, mark, &none) == 0;
}

static struct event_base *
base_make(void)
{
	struct event_config *config = event_config_new();
	struct event_base   *base;

	if (!config)
		return NULL;
	event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV | EVENT_BASE_FLAG_NOLOCK);
	event_config_avoid_method(config, "select");
	event_config_avoid_method(config, "poll");
	base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

/* One try; -EAGAIN when a descriptor could not be told from the daemon's. */
static int
base_try(struct event_base **ret, int fds[HTTPD_BASE_FDS])
{
	struct event_base *base = NULL;
	ino_t             *before;
	int                stdio[3], count, first, r;

	r = spare_fds_check(stdio, &count);
	if (r)
		return r;
	first = count >= fd_floor && fd_floor > FD_LOWEST ? fd_floor : 0; /* the agent's core leads libevent's there */
	before = calloc((size_t)++count, sizeof(*before));
	for (int fd = first; before && fd < count; fd++)
		before[fd] = pipe_at(fd);
	if (before)
		base = base_make();
	stdio_give_back(stdio);
	if (base) {
		fds[1] = fds[2] = -1;
		r = pipe_find(before, first, count, fds + 1);
		if (r)
			fds[1] = fds[2] = -1;
		fds[0] = epoll_find(base, count);
		if (fds[0] < 0)
			r = -EAGAIN;
		*ret = base;
	}
	free(before);
	return base ? r : -ENOMEM;
}

/* When nothing can be proven the base is used all the same: a forked child then keeps
 * descriptors that it cannot misuse, rather than lose its own. */
int
httpd_base_new(struct event_base **ret, int fds[HTTPD_BASE_FDS])
{
	struct event_base *base = NULL;
	int                r = -ENOMEM;

	for (int i = 0; i < TRIES; i++) {
		r = base_try(&base, fds);
		if (r != -EAGAIN || i == TRIES - 1)
			break;
		event_base_free(base);
		base = NULL;
	}
	if (!base)
		return r;
	*ret = base;
	return 0;
}
