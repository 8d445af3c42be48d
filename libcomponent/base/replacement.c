/*
 * replacement.c - a new file beside the place that it is to take by rename(2).
 *
 * In a directory where others may write, a name that they can foretell is one that they
 * can have made before, as a link to a file of ours; so it is random, and O_EXCL takes
 * none that is there.  Not mkstemp(3), which has no mode but 0600, and no umask.
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
#include <sys/random.h>

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
