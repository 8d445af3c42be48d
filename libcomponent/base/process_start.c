/*
 * process_start.c - field 22 of /proc/PID/stat.
 *
 * What a stranger would get wrong: the second field is the program's name, which may hold blanks and
 * brackets; fields are counted from its last bracket on.
 *
 * Tests: tests/serve/test_siblings.c, tests/componentctl/list.t.
 */
#include <config.h>

#include "process_start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "our_fd.h"

#define START_FIELD 22

int64_t
process_start(const char *path, int32_t pid)
{
	char        text[1024];
	const char *at;
	int         fd = our_fd_open(path, O_RDONLY, 0);
	ssize_t     n;

	if (fd < 0)
		return fd;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		n = -errno;
	our_fd_close(fd);
	if (n < 0)
		return n;
	text[n] = '\0';
	if (atoi(text) != pid)
		return -EXDEV;
	at = strrchr(text, ')');
	for (int field = 2; at && field < START_FIELD; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoll(at, NULL, 10) : -EINVAL;
}

int64_t
process_started_ns(void)
{
	static _Atomic pid_t   of;
	static _Atomic int64_t start;
	int64_t                ticks, per_second = sysconf(_SC_CLK_TCK);

	if (of == getpid())
		return start;
	ticks = process_start("/proc/self/stat", getpid());
	if (ticks < 0 || per_second <= 0)
		return 0;
	start = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) + ticks * (CLOCK_NS_PER_S / per_second);
	of = getpid();
	return start;
}
