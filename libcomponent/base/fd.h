/*
 * fd.h - descriptors of ours are never 0, 1 or 2; in a stranger's process they are high.
 *
 * A daemon that closed its standard streams would otherwise get our epoll
 * descriptor as its stderr, and print into it.  And a program that nobody built with us may count on
 * the number that its first open() returns: so the agent's core asks for high ones (fd_prefer()).
 * The kernel makes none with a high number: it is moved at once, which takes a call that a seccomp
 * filter of the program's may end it for.  So that is done while the server starts, and where it is asked
 * whether it may; files that are read for an instant stay where they are.  Where the agent's threads have a table of their
 * own (our_table.h) its numbers are high as well: in the end they may be the program's.
 */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

#define FD_LOWEST 3

/* Where ours begin now: FD_LOWEST, or above between fd_raise() and fd_lower(). */
extern _Atomic int fd_floor;

/* From now on, where may() says so: the floor that fd_raise() sets. */
void fd_prefer(int floor, bool (*may)(void));
/* May wait for /proc: not while no thread may fork. */
int  fd_floor_now(void);
void fd_raise(void);
void fd_lower(void);
/* fd, at that number or above, if one is left there; in any case none of 0 to 2; or a negative errno. */
int  fd_move(int fd, int floor);

/* Takes the result of a call that makes a descriptor: it, moved if needed, or
 * a negative errno. */
static inline int
fd_keep(int fd)
{
	if (fd < 0)
		return -errno;
	return fd >= fd_floor ? fd : fd_move(fd, fd_floor);
}

/* write(2), again where a signal interrupts it: bytes, which may be fewer, or a negative errno.  A reader that is gone and
 * RLIMIT_FSIZE are -EPIPE and -EFBIG, and no signal that would end a program which has it at its default. */
ssize_t fd_write_guarded(int fd, const void *buf, size_t size);

static inline void
fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

#endif
