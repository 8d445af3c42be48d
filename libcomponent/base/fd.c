/*
 * fd.c - where our descriptors are among the process's numbers, and a write that raises no signal: fd.h.
 *
 * What a stranger would get wrong: the bare call is used to close, as close(3) is a cancellation point.
 *
 * Tests: tests/components/agent.t, tests/lifecycle/test_log.c.
 */
#include <config.h>

#include "fd.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include "our_mask.h"

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

ssize_t
fd_write_guarded(int fd, const void *buf, size_t size)
{
	static const struct timespec now = { 0, 0 };
	uint64_t                     both = OUR_MASK_BIT(SIGPIPE) | OUR_MASK_BIT(SIGXFSZ);
	sigset_t                     only, pending, before;
	ssize_t                      result;
	int                          raised;

	sigemptyset(&pending);
	sigpending(&pending);
	our_mask_change(SIG_BLOCK, &both, &before);
	do
		result = write(fd, buf, size);
	while (result < 0 && errno == EINTR);
	if (result < 0)
		result = -errno;
	/* Takes back the signal that our own write raised, and no other. */
	raised = result == -EPIPE ? SIGPIPE : result == -EFBIG ? SIGXFSZ : 0;
	if (raised && !sigismember(&pending, raised)) {
		sigemptyset(&only);
		sigaddset(&only, raised);
		while (sigtimedwait(&only, NULL, &now) < 0 && errno == EINTR)
			;
	}
	our_mask_restore(&before);
	return result;
}
