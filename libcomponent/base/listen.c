/*
 * listen.c - from an address to listening sockets, all of them, before ready.
 *
 * Each kind of address has a file: listen_tcp.c, listen_unix.c, and listen_fd.c for sockets
 * that systemd hands over.  Who holds a port that is busy, listen_owner.c finds out;
 * listen_dead.c removes the unix sockets of processes that are no more.
 *
 * Tests: tests/base/test_listen.c, tests/components/profiling.t.
 */
#include <config.h>

#include "listen.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "our_fd.h"

int
listen_open(const struct address *a, struct listen_set *ret, struct component_error *err)
{
	struct listen_set set = { 0 };
	int               r = -EINVAL;

	switch (a->kind) {
	case ADDRESS_OFF:
		component_error_set(err, "0: is no address to listen on");
		break;
	case ADDRESS_TCP:
		r = listen_open_tcp(a, &set, err);
		break;
	case ADDRESS_UNIX:
		listen_remove_dead(a->host);
		r = listen_open_unix(a, &set, err);
		break;
	case ADDRESS_FD:
		r = listen_open_fd(a, &set, err);
		break;
	}
	if (r == 0)
		*ret = set;
	else
		listen_close(&set);
	return r;
}

/* Only our own file: somebody may have put his there since. */
void
listen_unlink(const struct listen_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct listen_socket *s = &set->sockets[i];
		const char                 *path = s->address + strlen("unix:");
		struct stat                 st;

		if (s->is_unix && s->ino && stat(path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
			unlink(path);
	}
}

void
listen_close(struct listen_set *set)
{
	listen_unlink(set);
	for (size_t i = 0; i < set->count; i++)
		our_fd_close(set->sockets[i].fd);
	memset(set, 0, sizeof(*set));
}

void
listen_forked(struct listen_set *set)
{
	set->count = 0;
}
