/*
 * proc_self.c - what /proc tells of this process and its threads.
 *
 * What a stranger would get wrong:
 * - opendir(3) and fopen(3) take memory from malloc; this runs while malloc may be
 *   what is being looked at.  So it is open, getdents64 and read.
 * - A daemon that has closed its standard descriptors must not find ours there, nor
 *   a child that it forks: our_fd.c.
 * - A /proc that was mounted in another pid namespace numbers threads as that one does: ours
 *   there is another thread, if there is one.  Only /proc/self and /proc/thread-self lead to us.
 * - /proc/self is the process by its first thread.  When that has ended by pthread_exit(3)
 *   maps, status and stat there are empty; of /proc/thread-self they are not.
 *
 * Tests: tests/cpu/test_limits.c.
 */
#include <config.h>

#include "proc_self.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "our_fd.h"
#include "proc_status.h"
#include "thread_id.h"
#include "threads_known.h"

#define BLOCKED_ALL  40  /* of 62 signals: a mask with so many is meant to keep all away, not for some to be waited for */
#define MOMENT_NS    500000L /* a mask with PROC_SELF_SHUT is looked at again after it ... */
#define MOMENTS      20      /* ... so often */

/* Does it number threads as we do? */
static bool
is_ours(void)
{
	char    link[64], expected[64];
	ssize_t len = readlink("/proc/thread-self", link, sizeof(link) - 1);

	if (len <= 0)
		return true; /* what is wrong is found out by opening it */
	link[len] = '\0';
	snprintf(expected, sizeof(expected), "%d/task/%d", (int)syscall(SYS_getpid), (int)thread_id_self());
	return strcmp(link, expected) == 0;
}

int
proc_self_tasks(void)
{
	return is_ours() ? our_fd_open("/proc/self/task", O_RDONLY | O_DIRECTORY, 0) : -EXDEV;
}

static bool
is_short(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

int
proc_self_threads(proc_self_thread_fn *fn, void *arg)
{
	_Alignas(8) char buf[4096];
	struct dirent64 *d;
	long             got, at;
	pid_t            tid;
	int              fd, err = 0;

	fd = proc_self_tasks();
	if (fd < 0 && is_short(fd))
		return fd;
	if (fd < 0) {
		threads_known_each(fn, arg);
		return 0;
	}
	while ((got = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (at = 0; at < got; at += d->d_reclen) {
			d = (struct dirent64 *)(buf + at);
			tid = (pid_t)strtol(d->d_name, NULL, 10);
			if (tid > 0)
				fn(arg, tid);
		}
	}
	if (got < 0)
		err = -errno;
	our_fd_close(fd);
	return err;
}

const char *
proc_self_missing(void)
{
	int fd = proc_self_tasks();

	our_fd_close(fd);
	return fd >= 0 || is_short(fd) ? "" :
	       fd == -EXDEV	       ? "/proc is that of another pid namespace" :
					 "/proc is not mounted or not readable";
}

int
proc_self_thread_open(pid_t tid, const char *file)
{
	char path[64];

	if (!is_ours())
		return -EXDEV;
	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)tid, file);
	return our_fd_open(path, O_RDONLY, 0);
}

uint64_t
proc_self_blocked_now(pid_t tid)
{
	char value[PROC_STATUS_BYTES];

	return proc_status_find(proc_self_thread_open(tid, "status"), "\nSigBlk:", value) ? strtoull(value, NULL, 16) : 0;
}

uint64_t
proc_self_blocked(pid_t tid)
{
	const struct timespec moment = { 0, MOMENT_NS };
	uint64_t              blocked = 0;

	for (int i = 0; i < MOMENTS; i++) {
		blocked = proc_self_blocked_now(tid);
		if (!(blocked & PROC_SELF_SHUT))
			return blocked;
		nanosleep(&moment, NULL);
	}
	return blocked; /* it is no moment's, then */
}

void
proc_self_name(pid_t tid, char name[PROC_SELF_NAME_BYTES])
{
	int     fd = proc_self_thread_open(tid, "comm");
	ssize_t n;

	n = fd < 0 ? 0 : read(fd, name, PROC_SELF_NAME_BYTES);
	our_fd_close(fd);
	name[n > 0 ? n - 1 : 0] = '\0'; /* in place of the newline */
}

bool
proc_self_blocks(pid_t tid, int signal_number)
{
	return proc_self_blocked(tid) >> (signal_number - 1) & 1;
}

uint64_t
proc_self_wants(pid_t tid)
{
	uint64_t blocked = proc_self_blocked(tid);

	return __builtin_popcountll(blocked) < BLOCKED_ALL ? blocked : 0;
}

int
proc_self_count(int fd, unsigned long *ret_threads)
{
	struct proc_status_line lines[] = { { .key = "\nThreads:" }, { .key = "\nSeccomp_filters:" }, { .key = "\nSeccomp:" } };

	proc_status_read(fd, lines, 3);
	*ret_threads = lines[0].found ? strtoul(lines[0].value, NULL, 10) : 0;
	return lines[1].found ? atoi(lines[1].value) : lines[2].found ? atoi(lines[2].value) > 0 : -1;
}

int
proc_self_filters(pid_t tid)
{
	unsigned long threads;
	int           fd = proc_self_thread_open(tid, "status"), ret;

	ret = fd < 0 ? -1 : proc_self_count(fd, &threads);
	our_fd_close(fd);
	return ret;
}

int
proc_self_signals(unsigned long *ret_queued, unsigned long *ret_limit)
{
	char          value[PROC_STATUS_BYTES];
	char         *at;
	struct rlimit allowed;

	/* Without /proc nobody says what others of this user have queued: as if it were nothing. */
	if (!proc_status_find(proc_status_open(), "\nSigQ:", value)) {
		if (getrlimit(RLIMIT_SIGPENDING, &allowed) < 0)
			return -ENOENT;
		*ret_queued = 0;
		*ret_limit = allowed.rlim_cur;
		return 0;
	}
	*ret_queued = strtoul(value, &at, 10);
	if (*at != '/')
		return -ENOENT;
	*ret_limit = strtoul(at + 1, NULL, 10);
	return 0;
}
