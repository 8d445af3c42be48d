/*
 * file.c - opening a file inside somebody else's process.
 *
 * A daemon that has closed its standard descriptors would get 0, 1 or 2 here, and
 * whatever it prints meanwhile would go into our file; a child that it forks would
 * keep the file open.  our_fd.c sees to both.  O_NONBLOCK so that a fifo under a
 * library's name does not hang us.
 *
 * Tests: tests/symbols/test_symbols.c
 */
#include <config.h>

#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "our_fd.h"
#include "process.h"

/* Once more, now that it was seen to be a regular file; another one may have come in its place since. */
static int
open_again(const char *path, const struct stat *seen)
{
	struct stat st;
	int         fd = our_fd_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

	if (fd < 0 || (!fstat(fd, &st) && st.st_dev == seen->st_dev && st.st_ino == seen->st_ino))
		return fd;
	our_fd_close(fd);
	return -ESTALE;
}

int
file_open_regular(const char *path)
{
	char        link[PROCESS_PATH_MAX];
	struct stat st;
	int         place = our_fd_open(path, O_PATH, 0), fd = -ENOENT;

	if (place < 0)
		return place;
	snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", place);
	if (!fstat(place, &st) && S_ISREG(st.st_mode)) {
		fd = our_fd_open(link, O_RDONLY | O_NOCTTY, 0);
		if (fd == -ENOENT) /* there is no /proc */
			fd = open_again(path, &st);
	}
	our_fd_close(place);
	return fd;
}

/* Below the root of the process that is looked at, as it may be in a container, which may have put anything there. */
static __attribute__((noinline)) int
open_below_root(const char *path)
{
	char root[PROCESS_PATH_MAX], whole[PROCESS_PATH_MAX + PATH_MAX];

	if (snprintf(whole, sizeof(whole), "%s%s", process_path("root", root), path) >= (int)sizeof(whole))
		return -ENAMETOOLONG;
	return file_open_regular(whole);
}

int
file_open(const char *path)
{
	int fd;

	if (!process_other() || *path != '/' || !strncmp(path, "/proc/", 6))
		return our_fd_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	fd = open_below_root(path);
	return fd >= 0 ? fd : file_open_regular(path); /* it is that process that names it: no device is opened for it */
}

const char *
file_of_mapping(unsigned i, uintptr_t start, uintptr_t limit, bool main, const char *path, char link[FILE_LINK_MAX])
{
	char place[FILE_LINK_MAX];

	if (i == 0) {
		snprintf(place, sizeof(place), "map_files/%lx-%lx", (unsigned long)start, (unsigned long)limit);
		return process_path(place, link);
	}
	if (main && i == 1)
		return process_path("exe", link);
	if (main && i == 2) /* after pthread_exit() in main */
		return process_other() ? process_path("exe", link) : strcpy(link, "/proc/thread-self/exe");
	return i == (main ? 3 : 1) ? path : NULL;
}
