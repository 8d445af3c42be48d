/*
 * fd.h - descriptors of ours are never 0, 1 or 2.
 *
 * A daemon that closed its standard streams would otherwise get our epoll
 * descriptor as its stderr, and print into it.
 */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define FD_LOWEST 3

/* Takes the result of a call that makes a descriptor: it, moved if needed, or
 * a negative errno. */
static inline int
fd_keep(int fd)
{
	int moved;

	if (fd < 0)
		return -errno;
	if (fd >= FD_LOWEST)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, FD_LOWEST);
	if (moved < 0)
		moved = -errno;
	close(fd);
	return moved;
}

static inline void
fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

#endif
