/*
 * notify.c - telling the service manager: ready, reloading, stopping, alive.
 *
 * The protocol is one datagram of NAME=VALUE lines to the socket named in
 * NOTIFY_SOCKET; see sd_notify(3).  A socket is opened for each message: they
 * are few, and a forked child then has nothing of ours to close.
 *
 * What surprises: the variables stay in the environment.  sd_notify(3) offers to
 * unset them for the children's sake, but we never change the environment, which
 * other threads of the daemon may be reading.  A child that should not talk to
 * the manager must have them removed by whoever starts it (systemd takes its
 * messages only with NotifyAccess=all in any case).
 *
 * The sign of life (WATCHDOG=1) is sent by a timer of the event loop and nothing
 * else, so that it stops when the loop hangs.
 *
 * Why not libsystemd: forty lines against a library, and one more dependency.
 *
 * Tests: tests/lifecycle/test_notify.c.
 */
#include <config.h>

#include "notify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "digits.h"
#include "fd.h"

static int
watchdog_init(struct notify *n, const char **ret_name)
{
	const char *usec = secure_getenv("WATCHDOG_USEC");
	const char *pid = secure_getenv("WATCHDOG_PID");
	int64_t     value, whose;

	if (!usec || !*usec)
		return 0;
	if (pid && *pid) {
		whose = digits_number(pid, INT32_MAX);
		if (whose < 0) {
			*ret_name = "WATCHDOG_PID";
			return -EINVAL;
		}
		if (whose != getpid())
			return 0; /* meant for our parent */
	}
	value = digits_number(usec, INT64_MAX / 1000); /* fits in nanoseconds */
	if (value <= 0) {
		*ret_name = "WATCHDOG_USEC";
		return -EINVAL;
	}
	n->watchdog_ns = value * 1000;
	return 0;
}

int
notify_init(struct notify *n, const char **ret_name)
{
	const char *path = secure_getenv("NOTIFY_SOCKET");
	size_t      length;

	memset(n, 0, sizeof(*n));
	if (!path || !*path)
		return 0;
	length = strlen(path);
	if ((path[0] != '/' && path[0] != '@') || length < 2 || length >= sizeof(n->address.sun_path)) {
		*ret_name = "NOTIFY_SOCKET";
		return -EINVAL;
	}
	n->address.sun_family = AF_UNIX;
	memcpy(n->address.sun_path, path, length);
	n->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	if (path[0] == '@')
		n->address.sun_path[0] = '\0'; /* abstract: no NUL at the end either */
	else
		n->size++;
	return watchdog_init(n, ret_name);
}

int
notify_send(const struct notify *n, const char *state)
{
	int     fd;
	ssize_t sent;

	if (n->size == 0)
		return 0;
	fd = fd_keep(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return fd;
	/* A manager that does not read must not stop the daemon's loop. */
	do
		sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
			(const struct sockaddr *)&n->address, n->size);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		sent = -errno;
	close(fd);
	return sent < 0 ? (int)sent : 0;
}
