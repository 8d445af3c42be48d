/*
 * httpd_base.c - libevent's event_base as a guest may have one: no surprise
 * exits, and its descriptors known by number.
 *
 * event_base_new() opens an epoll descriptor and a pipe and tells nobody their
 * numbers, yet a forked child has to close them without calling libevent (it
 * would tear down the parent's epoll set) and without closing anything of the
 * daemon's, whose threads open descriptors all the while.  So each is proven:
 *
 *   epoll  the one whose /proc/self/fdinfo names our eventfd as "tfd:" after
 *          event_add() and no more after event_del();
 *   pipe   the one pipe that was not there before, with both ends here and
 *          marked non-blocking and close-on-exec.  When the daemon has made such
 *          a pipe at the same moment there are two: try again.
 *
 * What a stranger would get wrong:
 * - libevent calls exit() when that pipe cannot be made (event_sock_err in
 *   evsig_init_), so a process short of descriptors must never get so far.
 * - It lets the environment choose its mechanism (EVENT_NOEPOLL) unless told not
 *   to, and makes one more descriptor when the daemon has called
 *   evthread_use_pthreads(), unless told that one thread uses this base.
 * - A daemon may run with 0, 1 or 2 closed; what lands there gets written to.
 *
 * Tests: tests/test_httpd_base.c, tests/serve_fork.t.
 */
#include <config.h>

#include "httpd_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPARE_FDS 16 /* must be free before event_base_new(): it takes 3, other threads some */
#define TRIES     16 /* a daemon that makes pipes without pause loses this race rarely */
#define PIPES_MAX 4096

struct pipes {
	struct {
		int   fd;
		ino_t ino;
	} at[PIPES_MAX];
	size_t count;
	bool   overflow;
};

int
httpd_fd_above_stdio(int fd)
{
	int copy;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (copy < 0)
		copy = -errno;
	close(fd);
	return copy;
}

/* Are so many descriptors left?  Takes 0 to 2 for as long as the caller wants. */
static int
spare_fds_check(int stdio[3])
{
	int  fds[SPARE_FDS], r = 0;
	size_t n;

	stdio[0] = stdio[1] = stdio[2] = -1;
	for (n = 0; n < SPARE_FDS; n++) {
		fds[n] = open("/", O_PATH | O_CLOEXEC);
		if (fds[n] < 0) {
			r = -errno;
			break;
		}
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

typedef void fd_fn(int fd, const char *link, void *arg);

static int
fds_walk(fd_fn *fn, void *arg)
{
	DIR           *dir = own_fd_opendir("/proc/thread-self/fd");
	struct dirent *e;
	char           link[64];
	ssize_t        n;

	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);
		if (n <= 0)
			continue;
		link[n] = '\0';
		fn(atoi(e->d_name), link, arg);
	}
	own_fd_closedir(dir);
	return 0;
}

static void
pipe_note(int fd, const char *link, void *arg)
{
	struct pipes *p = arg;
	unsigned long ino;

	if (sscanf(link, "pipe:[%lu]", &ino) != 1)
		return;
	if (p->count == PIPES_MAX) {
		p->overflow = true;
		return;
	}
	p->at[p->count].fd = fd;
	p->at[p->count++].ino = (ino_t)ino;
}

static bool
pipes_has(const struct pipes *p, ino_t ino)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->at[i].ino == ino)
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
pipe_find(const struct pipes *before, const struct pipes *after, int fds[2])
{
	size_t found = 0;
	ino_t  ino = 0;

	if (before->overflow || after->overflow)
		return -EAGAIN;
	for (size_t i = 0; i < after->count; i++) {
		if (pipes_has(before, after->at[i].ino) || !is_internal_pipe(after->at[i].fd))
			continue;
		if (found == 2 || (found == 1 && after->at[i].ino != ino))
			return -EAGAIN;
		ino = after->at[i].ino;
		fds[found++] = after->at[i].fd;
	}
	if (found == 1)
		return -EAGAIN;
	return 0;
}

struct epolls {
	int  target;   /* the eventfd looked for */
	int  fd;       /* the first that names it */
	int  only;     /* unless -1, look at this one alone */
	unsigned count;
};

static void
epoll_note(int fd, const char *link, void *arg)
{
	struct epolls *e = arg;
	char           path[64], line[256];
	FILE          *f;
	int            tfd;

	if (strcmp(link, "anon_inode:[eventpoll]") || (e->only >= 0 && fd != e->only))
		return;
	snprintf(path, sizeof(path), "/proc/thread-self/fdinfo/%d", fd);
	f = own_fd_fopen(path);
	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "tfd: %d", &tfd) == 1 && tfd == e->target) {
			e->fd = fd;
			e->count++;
			break;
		}
	own_fd_fclose(f);
}

static void
on_probe(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

/* The descriptor that starts and stops naming our eventfd as we say, or -1. */
static int
epoll_find(struct event_base *base)
{
	struct epolls with = { .only = -1 }, without;
	struct event *probe = NULL;
	int           fd, found = -1;

	fd = httpd_fd_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (fd < 0)
		return -1;
	probe = event_new(base, fd, EV_READ | EV_PERSIST, on_probe, NULL);
	if (!probe || event_add(probe, NULL))
		goto out;
	with.target = fd;
	fds_walk(epoll_note, &with);
	event_del(probe);
	if (with.count != 1)
		goto out;
	without = (struct epolls){ .target = fd, .only = with.fd };
	if (!fds_walk(epoll_note, &without) && without.count == 0)
		found = with.fd;
out:
	if (probe)
		event_free(probe);
	close(fd);
	return found;
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
base_try(struct event_base **ret, int fds[3], struct pipes *before, struct pipes *after)
{
	struct event_base *base;
	int                stdio[3], r;

	before->count = after->count = 0;
	before->overflow = after->overflow = false;
	r = spare_fds_check(stdio);
	if (r)
		return r;
	fds_walk(pipe_note, before);
	base = base_make();
	fds_walk(pipe_note, after);
	stdio_give_back(stdio);
	if (!base)
		return -ENOMEM;
	fds[1] = fds[2] = -1;
	r = pipe_find(before, after, fds + 1);
	if (r)
		fds[1] = fds[2] = -1;
	fds[0] = epoll_find(base);
	if (fds[0] < 0)
		r = -EAGAIN;
	*ret = base;
	return r;
}

/* When nothing can be proven (no /proc) the base is used all the same: a forked
 * child then keeps descriptors that it cannot misuse, rather than lose its own. */
int
httpd_base_new(struct event_base **ret, _Atomic int fds[HTTPD_BASE_FDS_MAX])
{
	struct pipes      *before, *after;
	struct event_base *base = NULL;
	int                found[3], r = -ENOMEM;

	before = calloc(1, sizeof(*before));
	after = calloc(1, sizeof(*after));
	if (!before || !after)
		goto out;
	for (int i = 0; i < TRIES; i++) {
		r = base_try(&base, found, before, after);
		if (r != -EAGAIN || i == TRIES - 1)
			break;
		event_base_free(base);
		base = NULL;
	}
	if (!base)
		goto out;
	for (int i = 0; i < 3; i++)
		atomic_store(&fds[i], found[i]);
	*ret = base;
	r = 0;
out:
	free(before);
	free(after);
	return r;
}
