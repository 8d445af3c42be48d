/*
 * listen_fd.c - sockets that systemd made and handed over.
 *
 * LISTEN_FDS says how many there are, from descriptor 3 on, LISTEN_FDNAMES what
 * they are called, and LISTEN_PID for whom; a program started by the one they were
 * meant for must not take them.  Once LISTEN_PID has been seen to be ours, that
 * holds for the children we fork too: daemon(3) changes the process id.
 *
 * What a stranger would get wrong: we use a copy.  The original stays open, with
 * close-on-exec, so that switching profiling off and on again finds it; clients
 * wait in its queue meanwhile, as they do with every socket of systemd's.  The
 * variables stay too: the environment is the daemon's.
 *
 * Why not sd_listen_fds(): one page of code is less than a library.
 *
 * Tests: tests/base/test_listen.c, tests/components/profiling.t.
 */
#include <config.h>

#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "digits.h"
#include "fd.h"
#include "our_fd.h"

#define INHERITED_MAX 1024 /* sockets; systemd hands over what fits its own limit, far fewer */
#define CLAIMED_BITS  64   /* sockets whose use is remembered; more count as used */

static atomic_bool          listen_pid_seen; /* LISTEN_PID was this process or one it came from */
static atomic_uint_fast64_t claimed;         /* bit i: descriptor FD_LOWEST + i was asked for */

int
listen_inherited(void)
{
	int64_t count = digits_number(getenv("LISTEN_FDS"), INHERITED_MAX);

	if (digits_number(getenv("LISTEN_PID"), INT32_MAX) == getpid())
		atomic_store(&listen_pid_seen, true);
	return count > 0 && atomic_load(&listen_pid_seen) ? (int)count : 0;
}

/* The index-th name of LISTEN_FDNAMES, "" if it has none. */
static void
name_of(int index, char *buf, size_t size)
{
	const char *p = getenv("LISTEN_FDNAMES");

	for (int i = 0; p && i < index; i++) {
		p = strchr(p, ':');
		if (p)
			p++;
	}
	snprintf(buf, size, "%.*s", p ? (int)strcspn(p, ":") : 0, p ? p : "");
}

bool
listen_claimed(int fd, char *name, size_t size)
{
	int index = fd - FD_LOWEST;

	name_of(index, name, size);
	return index >= CLAIMED_BITS || (atomic_load(&claimed) >> index & 1);
}

/* Is the index-th socket one that the address means? */
static bool
is_meant(const struct address *a, int index)
{
	char name[ADDRESS_HOST_MAX];

	if (a->host[strspn(a->host, "0123456789")] == '\0')
		return FD_LOWEST + index == atoi(a->host);
	name_of(index, name, sizeof(name));
	return strcmp(name, a->host) == 0;
}

bool
listen_fd_overlaps(const struct address *a, const struct address *b)
{
	int count = a->kind == ADDRESS_FD && b->kind == ADDRESS_FD ? listen_inherited() : 0;

	for (int i = 0; i < count; i++)
		if (is_meant(a, i) && is_meant(b, i))
			return true;
	return false;
}

/* Is the descriptor a stream socket that listens?  Else why not. */
static const char *
unfit(int fd)
{
	int                     value;
	socklen_t               size = sizeof(value);
	struct sockaddr_storage sa;
	socklen_t               sa_size = sizeof(sa);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &size) < 0)
		return errno == EBADF ? "is not open" : "is not a socket";
	if (value != SOCK_STREAM)
		return "is not a stream socket; its unit needs ListenStream=";
	size = sizeof(value);
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) < 0 || !value)
		return "does not listen; its unit needs Accept=no";
	if (getsockname(fd, (struct sockaddr *)&sa, &sa_size) < 0 ||
	    (sa.ss_family != AF_INET && sa.ss_family != AF_INET6 && sa.ss_family != AF_UNIX))
		return "is neither an IP nor a unix socket";
	return NULL;
}

static int
add(int fd, const char *text, struct listen_set *set, struct component_error *err)
{
	const char *why = unfit(fd);
	int         copy, flags;

	if (why) {
		component_error_set(err, "%s: descriptor %d %s", text, fd, why);
		return -ENOTSOCK;
	}
	copy = our_fd_copy(fd);
	if (copy < 0) {
		component_error_set(err, "%s: %s", text, strerror(-copy));
		return copy;
	}
	flags = fcntl(fd, F_GETFL);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(copy, F_SETFL, flags | O_NONBLOCK);
	if (listen_describe_unix(copy, &set->sockets[set->count]) < 0)
		listen_describe_tcp(copy, &set->sockets[set->count]);
	set->count++;
	return 0;
}

int
listen_open_fd(const struct address *a, struct listen_set *set, struct component_error *err)
{
	bool number = a->host[strspn(a->host, "0123456789")] == '\0';
	char text[ADDRESS_HOST_MAX + 8];
	int  count = listen_inherited(), left_off = 0, r;

	address_format(a, text, sizeof(text));
	if (count == 0) {
		component_error_set(err, getenv("LISTEN_FDS") ?
			"%s: the inherited sockets are meant for process %s, and this is %ld" :
			"%s: no socket was handed over (LISTEN_FDS is not set); start this with a systemd .socket unit",
			text, getenv("LISTEN_PID") ? getenv("LISTEN_PID") : "''", (long)getpid());
		return -ENOENT;
	}
	for (int i = 0; i < count; i++) {
		if (!is_meant(a, i))
			continue;
		if (set->count == LISTEN_MAX) {
			left_off++;
			continue;
		}
		r = add(FD_LOWEST + i, text, set, err);
		if (r < 0)
			return r;
		if (i < CLAIMED_BITS)
			atomic_fetch_or(&claimed, (uint_fast64_t)1 << i);
	}
	if (left_off > 0)
		snprintf(set->note, sizeof(set->note), "%s: %d more sockets of that name are not served; at most %d are", text, left_off, LISTEN_MAX);
	if (set->count > 0)
		return 0;
	if (number)
		component_error_set(err, "%s: the sockets handed over are fd:%d to fd:%d", text, FD_LOWEST,
			FD_LOWEST + count - 1);
	else
		component_error_set(err, "%s: no inherited socket has that name; their names are '%s'", text,
			getenv("LISTEN_FDNAMES") ? getenv("LISTEN_FDNAMES") : "");
	return -ENOENT;
}
