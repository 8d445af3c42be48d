/*
 * perf_room.c - the processors there are, and whether their events find room among
 * the daemon's descriptors.
 *
 * Tests: tests/test_tracer.c, tests/trace.t.
 */
#include <config.h>

#include "perf_room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "own_fd.h"
#include "perf.h"
#include "proc_self.h"

/* From "0-3,6,8-9". */
int
trace_perf_cpus_online(bool *cpus, unsigned *ret_count)
{
	char     text[1024], *at = text;
	unsigned n = 0;
	int      fd = own_fd_open("/sys/devices/system/cpu/online", O_RDONLY, 0);
	ssize_t  got;

	if (fd < 0)
		return -ENXIO; /* in a container, perhaps: not the kernel's refusal */
	got = read(fd, text, sizeof(text) - 1);
	own_fd_close(fd);
	text[got > 0 ? got : 0] = '\0';
	while (*at >= '0' && *at <= '9') {
		unsigned long first = strtoul(at, &at, 10), last = first;

		if (*at == '-')
			last = strtoul(at + 1, &at, 10);
		for (; first <= last && first < TRACE_PERF_CPUS_MAX; first++) {
			cpus[first] = true;
			if (n <= first)
				n = (unsigned)first + 1;
		}
		if (last >= TRACE_PERF_CPUS_MAX)
			return -E2BIG;
		at += *at == ',';
	}
	*ret_count = n;
	return n > 0 ? 0 : -ENOENT;
}

static void
on_thread_count(void *arg, pid_t tid)
{
	(void)tid;
	++*(unsigned *)arg;
}

/* Descriptors of the process, by their names in /proc. */
static unsigned
descriptors_used(void)
{
	_Alignas(8) char buf[4096];
	unsigned         n = 0;
	long             got, at;
	int              fd = own_fd_open("/proc/thread-self/fd", O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return 0;
	while ((got = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0)
		for (at = 0; at < got; at += *(uint16_t *)(buf + at + 16)) /* d_reclen */
			n++;
	own_fd_close(fd);
	return n;
}

/* Half of the descriptors that are left may be ours. */
int
trace_perf_room(const bool *cpus, unsigned cpu_count, char *why, unsigned size)
{
	struct rlimit limit;
	unsigned      threads = 0, count = 0, used = descriptors_used();
	unsigned long room, wanted;

	proc_self_threads(on_thread_count, &threads);
	for (unsigned i = 0; i < cpu_count; i++)
		count += cpus[i];
	wanted = (unsigned long)threads * count;
	getrlimit(RLIMIT_NOFILE, &limit);
	room = limit.rlim_cur > used ? (limit.rlim_cur - used) / 2 : 0;
	if (wanted <= room && wanted <= TRACE_PERF_EVENTS_MAX)
		return 0;
	snprintf(why, size, "%u threads on %u processors take %lu descriptors, and %lu may be used (RLIMIT_NOFILE, "
		"at most %d)", threads, count, wanted, room < TRACE_PERF_EVENTS_MAX ? room : TRACE_PERF_EVENTS_MAX,
		TRACE_PERF_EVENTS_MAX);
	return -EMFILE;
}
