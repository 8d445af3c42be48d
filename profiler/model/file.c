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

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "our_fd.h"

int
file_open(const char *path)
{
	return our_fd_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

const char *
file_of_mapping(unsigned i, uintptr_t start, uintptr_t limit, bool main, const char *path, char link[FILE_LINK_MAX])
{
	/* The thread's: after pthread_exit() in main. */
	static const char *const exe[] = { "/proc/self/exe", "/proc/thread-self/exe" };

	if (i == 0) {
		snprintf(link, FILE_LINK_MAX, "/proc/self/map_files/%lx-%lx", (unsigned long)start, (unsigned long)limit);
		return link;
	}
	if (main && i <= 2)
		return strcpy(link, exe[i - 1]);
	return i == (main ? 3 : 1) ? path : NULL;
}
