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
#include <stdbool.h>
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

static _Atomic pid_t   asked_by;        /* the process that the two are of */
static _Atomic int64_t by_day, by_boot; /* when it began, ns of CLOCK_REALTIME and of CLOCK_BOOTTIME */

static bool
is_known(void)
{
	int64_t ticks, per_second = sysconf(_SC_CLK_TCK);

	if (asked_by == getpid())
		return true;
	ticks = process_start("/proc/self/stat", getpid());
	if (ticks < 0 || per_second <= 0)
		return false;
	by_boot = ticks * (CLOCK_NS_PER_S / per_second);
	by_day = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) + by_boot;
	asked_by = getpid();
	return true;
}

int64_t
process_started_ns(void)
{
	return is_known() ? by_day : 0;
}

int64_t
process_up_ns(void)
{
	return is_known() ? clock_ns(CLOCK_BOOTTIME) - by_boot : 0;
}
