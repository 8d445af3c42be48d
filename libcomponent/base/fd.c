/*
 * fd.c - where our descriptors are among the process's numbers: fd.h.
 *
 * What a stranger would get wrong: the bare calls are used, as close(3) is a cancellation point.
 *
 * Tests: tests/components/agent.t.
 */
#include <config.h>

#include "fd.h"

#include <stddef.h>
#include <sys/syscall.h>

_Atomic int fd_floor = FD_LOWEST;

static int   preferred = FD_LOWEST;
static bool (*may_prefer)(void);

void
fd_prefer(int floor, bool (*may)(void))
{
	preferred = floor;
	may_prefer = may;
}

int
fd_floor_now(void)
{
	return may_prefer && may_prefer() ? preferred : FD_LOWEST;
}

void
fd_raise(void)
{
	fd_floor = fd_floor_now();
}

void
fd_lower(void)
{
	fd_floor = FD_LOWEST;
}

int
fd_move(int fd, int floor)
{
	int moved = -1;

	if (fd >= floor)
		return fd;
	if (floor > FD_LOWEST)
		moved = fcntl(fd, F_DUPFD_CLOEXEC, floor); /* above the limit, or none is left there */
	if (moved < 0 && fd >= FD_LOWEST)
		return fd;
	if (moved < 0)
		moved = fcntl(fd, F_DUPFD_CLOEXEC, FD_LOWEST);
	if (moved < 0)
		moved = -errno;
	syscall(SYS_close, fd);
	return moved;
}
