/*
 * replacement.c - a new file beside the place that it is to take by rename(2).
 *
 * In a directory where others may write, a name that they can foretell is one that they
 * can have made before, as a link to a file of ours; so it is random, and O_EXCL takes
 * none that is there.  Not mkstemp(3), which has no mode but 0600, and no umask.
 *
 * What surprises: a device or a FIFO is written to, as rename(2) would take its place, and /dev/null
 * be a file from then on.  A link is replaced like a file, or who makes one in such a directory says
 * what is written to; but for the names of descriptors, which are links of the system's.
 *
 * Tests: tests/serve/start_stop.t, tests/lifecycle/test_config.c.
 */
#include <config.h>

#include "replacement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "our_fd.h"

#define TRIES 100

int
replacement_create(const char *path, mode_t mode, char **ret_name)
{
	uint64_t number;
	char    *name;
	int      fd = -EEXIST;

	for (int i = 0; i < TRIES && fd == -EEXIST; i++) {
		if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
			return -EIO;
		if (asprintf(&name, "%s.%016llx", path, (unsigned long long)number) < 0)
			return -ENOMEM;
		fd = our_fd_open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
		if (fd >= 0)
			*ret_name = name;
		else
			free(name);
	}
	return fd;
}

int
replacement_fd_of(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };

	for (size_t i = 0; i < 2; i++) {
		const char *number = path + strlen(folders[i]);

		if (!strncmp(path, folders[i], strlen(folders[i])) && *number && !number[strspn(number, "0123456789")])
			return atoi(number);
	}
	return !strcmp(path, "/dev/stdout") ? STDOUT_FILENO : !strcmp(path, "/dev/stderr") ? STDERR_FILENO : -1;
}

int
replacement_open(const char *path, mode_t mode, char **ret_name)
{
	int         fd = replacement_fd_of(path);
	struct stat st;

	*ret_name = NULL;
	if (fd >= 0)
		return our_fd_copy(fd);
	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return our_fd_open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0);
	return replacement_create(path, mode, ret_name);
}
