/*
 * core.c - what the agent's core has besides the profiler: it is a stranger in the process.
 *
 * libcomponent-preload-core.so is the profiling server with libevent, zlib and protobuf-c in it, all
 * hidden: a program may bring other ones, or functions of these names.  They come from the archives
 * that configure has found, most of which were compiled for programs: such code reads libc's
 * "stderr" at an address that is fixed when it is linked.  The linker (--wrap) leads it here.
 *
 * And its descriptors are high ones (fd.h), those that libevent makes as well, which the linker leads here, too.
 *
 * What a stranger would get wrong:
 * - Nothing else of libc's data is read at a fixed address, or the link would fail (-z text); configure tries.
 * - A filter that the program puts itself under may end it for fcntl(2): see collect/seccomp.h.
 *
 * Tests: tests/components/agent.t, tests/project/exports.t.
 */
#include <config.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <event2/event.h>

#include "fd.h"
#include "seccomp.h"

/* Of 1024, which most processes may have: a quarter is for us, and the table of numbers in
 * the kernel grows no further. */
#define FLOOR 768

extern FILE *__real_stderr;
FILE        *__wrap_stderr;

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __real_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags);

int
__wrap_epoll_create1(int flags)
{
	int fd = fd_keep(__real_epoll_create1(flags));

	if (fd >= 0)
		return fd;
	errno = -fd;
	return -1;
}

int
__wrap_pipe2(int fds[2], int flags)
{
	if (__real_pipe2(fds, flags))
		return -1;
	for (int i = 0; i < 2; i++)
		if (fds[i] >= FD_LOWEST) /* its caller keeps it from being another */
			fds[i] = fd_move(fds[i], fd_floor);
	return 0;
}

static bool
may_move(void)
{
	seccomp_look();
	return !seccomp_on();
}

/* What libevent says: stderr is the program's, and what fails is handled, as where the program closes
 * our descriptors. */
static void
keep_quiet(int severity, const char *message)
{
	(void)severity;
	(void)message;
}

/* Before the server starts, as nothing of the core has run. */
__attribute__((constructor(101))) static void
core_begin(void)
{
	struct rlimit limit;
	int           floor = FLOOR;

	__wrap_stderr = __real_stderr;
	event_set_log_callback(keep_quiet);
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < FLOOR / 3 * 4)
		floor = (int)limit.rlim_cur / 4 * 3;
	if (floor > FD_LOWEST)
		fd_prefer(floor, may_move);
}
