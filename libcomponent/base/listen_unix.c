/*
 * listen_unix.c - a unix socket that only its owner may connect to.
 *
 * Mode 0600 without a moment of anything else, and without umask(), which is the
 * whole process's and would change files other threads make meanwhile: fchmod() on
 * the unbound socket sets the mode Linux gives the file in bind(); should a kernel
 * not do so, the file is put right before listen(), until when connect() fails.
 *
 * A file that is there already: a socket nobody answers on is left over from a
 * crash and goes; one that answers is busy; anything else is somebody's file and
 * is never removed.  A young one is asked for a tenth of a second.
 *
 * "%p" in a path is the process's number, so that each worker has a file of its own;
 * listen_dead.c removes those that killed ones have left.
 *
 * What a stranger would get wrong: an abstract name ("@name") has no file and no
 * mode; every user of the machine may connect.  It is allowed, with a note.
 *
 * Why not a temporary name and rename(): a socket cannot be told from another by
 * name afterwards, and rename() replaces a busy one without asking.
 *
 * Tests: tests/base/test_listen.c.
 */
#include <config.h>

#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "listen_owner.h"
#include "our_fd.h"

#define SOCKET_MODE  0600 /* its mode is a unix socket's only protection */
#define ASKED_AGAIN  10
#define ASK_AGAIN_MS 10

static socklen_t
sockaddr_make(const char *host, struct sockaddr_un *un)
{
	size_t length = strlen(host);

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, host, length);
	if (*host == '@') {
		un->sun_path[0] = '\0';
		return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	}
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
}

/* Is somebody listening there?  -EADDRINUSE with his name, 0 if nobody answers. */
static int
ask(const struct sockaddr_un *un, socklen_t size, char *owner, size_t owner_size)
{
	struct ucred peer;
	socklen_t    peer_size = sizeof(peer);
	int          fd = our_fd_socket(AF_UNIX, LISTEN_TYPE), r = -EADDRINUSE;

	if (fd < 0)
		return fd;
	if (connect(fd, (const struct sockaddr *)un, size) < 0) {
		/* Refused or gone is nobody; a full queue, no permission or
		 * another kind of socket is somebody. */
		if (errno == ECONNREFUSED || errno == ENOENT)
			r = 0;
	} else if (owner_size > 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) == 0) {
		listen_owner_pid(peer.pid, owner, owner_size);
	}
	our_fd_close(fd);
	return r;
}

bool
listen_file_is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

bool
listen_unix_is_dead(const char *path)
{
	struct sockaddr_un un;
	socklen_t          size;

	if (strlen(path) >= sizeof(un.sun_path))
		return false;
	size = sockaddr_make(path, &un);
	return ask(&un, size, NULL, 0) == 0;
}

/* As ask().  Who has bound a young socket may be about to listen: until then it refuses as a dead one does. */
static int
ask_again(const struct sockaddr_un *un, socklen_t size, const struct stat *st, char *owner, size_t owner_size)
{
	int r = ask(un, size, owner, owner_size);

	for (int i = 0; i < ASKED_AGAIN && r == 0 && time(NULL) - st->st_mtime < LISTEN_YOUNG_SECONDS; i++) {
		poll(NULL, 0, ASK_AGAIN_MS);
		r = ask(un, size, owner, owner_size);
	}
	return r;
}

/* Makes room at the path: removes a stale socket, refuses all else. */
static int
make_room(const char *path, const struct sockaddr_un *un, socklen_t size, struct component_error *err)
{
	char        owner[LISTEN_OWNER_MAX] = "";
	struct stat st, now;
	int         r;

	if (lstat(path, &st) < 0) {
		if (errno == ENOENT)
			return 0;
		r = -errno;
		component_error_set(err, "unix:%s: %s", path, strerror(-r));
		return r;
	}
	if (!S_ISSOCK(st.st_mode)) {
		component_error_set(err, "unix:%s: there is a file that is not a socket; remove it or write another path", path);
		return -EEXIST;
	}
	r = ask_again(un, size, &st, owner, sizeof(owner));
	/* Another may have made room meanwhile, and have bound there. */
	if (r == 0 && lstat(path, &now) == 0 && !listen_file_is_same(&now, &st))
		r = -EADDRINUSE;
	if (r == 0 && unlink(path) < 0 && errno != ENOENT)
		r = -errno;
	if (r < 0)
		component_error_set(err, "unix:%s: %s%s%s", path, strerror(-r), *owner ? ", held by " : "", owner);
	return r;
}

/* The file just bound: its identity, and its mode if bind() did not set it. */
static int
settle(const char *path, struct listen_socket *s)
{
	int         fd = our_fd_open(path, O_PATH | O_NOFOLLOW, 0), r = 0;
	char        proc[64];
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0) {
		r = -errno;
	} else if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid()) {
		r = -EEXIST; /* exchanged under our hands */
	} else {
		s->dev = st.st_dev;
		s->ino = st.st_ino;
		/* Through /proc: fchmod() refuses O_PATH, and the name might be another file by now. */
		snprintf(proc, sizeof(proc), "/proc/thread-self/fd/%d", fd);
		if ((st.st_mode & 07777) != SOCKET_MODE && chmod(proc, SOCKET_MODE) < 0)
			r = -errno;
	}
	our_fd_close(fd);
	return r;
}

static const char *
hint(int error)
{
	switch (error) {
	case -ENOENT:
		return "; its directory does not exist";
	case -EACCES:
		return "; this user may not make files in its directory";
	case -EROFS:
		return "; write a path on a file system that can be written";
	default:
		return "";
	}
}

int
listen_describe_unix(int fd, struct listen_socket *s)
{
	struct sockaddr_un un = { 0 };
	socklen_t          size = sizeof(un);
	int                length;

	if (getsockname(fd, (struct sockaddr *)&un, &size) < 0)
		return -errno;
	if (un.sun_family != AF_UNIX)
		return -EAFNOSUPPORT;
	length = (int)(size - offsetof(struct sockaddr_un, sun_path));
	s->fd = fd;
	s->is_unix = s->loopback = true;
	if (length > 0 && un.sun_path[0] == '\0')
		snprintf(s->address, sizeof(s->address), "unix:@%.*s", length - 1, un.sun_path + 1);
	else
		snprintf(s->address, sizeof(s->address), "unix:%.*s", length > 0 ? length : 0,
			un.sun_path);
	snprintf(s->url, sizeof(s->url), "http+%s", s->address);
	return 0;
}

int
listen_open_unix(const struct address *a, struct listen_set *set, struct component_error *err)
{
	char                  path[ADDRESS_HOST_MAX];
	bool                  abstract = a->host[0] == '@';
	struct listen_socket *s = &set->sockets[0];
	struct sockaddr_un    un;
	socklen_t             size;
	char                  owner[LISTEN_OWNER_MAX] = "";
	int                   r;

	address_path(a, path, sizeof(path));
	size = sockaddr_make(path, &un);
	if (!abstract) {
		r = make_room(path, &un, size, err);
		if (r < 0)
			return r;
	}
	r = our_fd_socket(AF_UNIX, LISTEN_TYPE);
	if (r < 0)
		goto failed;
	set->count = 1;
	s->fd = r;
	r = fchmod(s->fd, SOCKET_MODE) < 0 ? -errno : 0;
	if (r == 0 && bind(s->fd, (const struct sockaddr *)&un, size) < 0)
		r = -errno;
	if (r == 0)
		r = listen_describe_unix(s->fd, s);
	if (r == 0 && !abstract)
		r = settle(path, s);
	if (r == 0 && listen(s->fd, LISTEN_BACKLOG) < 0)
		r = -errno;
	if (r == 0 && abstract)
		snprintf(set->note, sizeof(set->note), "%s has no file mode: every user of this machine may connect",
			s->address);
	if (r == -EADDRINUSE)
		ask(&un, size, owner, sizeof(owner));
failed:
	if (r < 0)
		component_error_set(err, "unix:%s: %s%s%s%s", path, strerror(-r), *owner ? ", held by " : "", owner, hint(r));
	return r;
}
