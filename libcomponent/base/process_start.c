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
#include <unistd.h>

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
