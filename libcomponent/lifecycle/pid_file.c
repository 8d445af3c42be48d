/*
 * pid_file.c - the process id in a file, whole or not at all.
 *
 * Written beside and renamed, so a reader never sees half a number.  Removed only
 * while it is still the file we wrote: a daemon started in our place meanwhile
 * keeps its own.  A device or a FIFO is written to and stays.
 *
 * What surprises: the file of a daemon of this name that still runs is replaced when the start was well, and not
 * before it: a second start by mistake mostly fails.  All others are written before the daemon's
 * start(), which may give up the right to.
 *
 * Tests: tests/lifecycle/test_config.c.
 */
#include <config.h>

#include "life.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absolute_path.h"
#include "digits.h"
#include "our_fd.h"
#include "replacement.h"

#define PID_FILE_MODE 0644 /* less the umask: anybody may know the number */

static int
write_all(int fd, struct stat *ret)
{
	char    text[24];
	int     size = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
	ssize_t wrote = write(fd, text, (size_t)size);

	if (wrote < 0)
		return -errno;
	if (wrote != size)
		return -ENOSPC;
	return fstat(fd, ret) < 0 ? -errno : 0;
}

static int
fail(struct component_error *err, const char *path, int result)
{
	component_error_set(err,
		"option '--pid-file': cannot write '%s': %s; name a file in a directory this "
		"user may write to",
		path, strerror(-result));
	return result;
}

int
pid_file_write(struct pid_file *p, const char *path, struct component_error *err)
{
	char       *final = NULL, *beside = NULL;
	struct stat st;
	int         fd = -1;
	int         result;

	if (!path || !*path)
		return 0;
	errno = 0;
	final = absolute_path(path);
	if (!final)
		return fail(err, path, -ENOMEM);
	if (final[0] != '/') { /* it is to be removed when the directory may be another one */
		result = fail(err, path, errno ? -errno : -ENOENT);
		goto out;
	}
	result = fd = replacement_open(final, PID_FILE_MODE, &beside);
	if (fd >= 0)
		result = write_all(fd, &st);
	if (result >= 0 && beside && rename(beside, final) < 0)
		result = -errno;
	if (result < 0) {
		result = fail(err, path, result);
		goto out;
	}
	if (beside) {
		*p = (struct pid_file) { final, st.st_dev, st.st_ino };
		final = NULL; /* removed and freed at the end */
	}
out:
	if (result < 0 && beside)
		unlink(beside);
	our_fd_close(fd);
	free(beside);
	free(final);
	return result;
}

/* By its name, which is as cut as ours: the number of one that was killed may be another program's by now. */
static bool
is_this_program(pid_t pid)
{
	char path[32], its[32] = "", ours[32] = "";
	int  fds[2];

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fds[0] = our_fd_open(path, O_RDONLY, 0);
	fds[1] = our_fd_open("/proc/self/comm", O_RDONLY, 0);
	if (fds[0] >= 0 && fds[1] >= 0 && (read(fds[0], its, sizeof(its) - 1) < 0 || read(fds[1], ours, sizeof(ours) - 1) < 0))
		its[0] = '\0';
	our_fd_close(fds[0]);
	our_fd_close(fds[1]);
	return *its && strcmp(its, ours) == 0;
}

bool
pid_file_is_anothers(const char *path)
{
	char        text[24] = "";
	struct stat st;
	int64_t     pid;
	int         fd;

	if (!path || !*path || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	fd = our_fd_open(path, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	our_fd_close(fd);
	text[strcspn(text, "\n")] = '\0';
	pid = digits_number(text, INT32_MAX);
	return pid > 0 && pid != getpid() && is_this_program((pid_t)pid);
}

void
pid_file_remove(struct pid_file *p)
{
	struct stat st;

	if (!p->path)
		return;
	if (stat(p->path, &st) == 0 && st.st_dev == p->dev && st.st_ino == p->ino)
		unlink(p->path);
	free(p->path);
	p->path = NULL;
}
