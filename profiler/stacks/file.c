/*
 * file.c - opening a file inside somebody else's process.
 *
 * A daemon that has closed its standard descriptors would get 0, 1 or 2 here, and
 * whatever it prints meanwhile would go into our file; a child that it forks would
 * keep the file open.  own_fd.c sees to both.  O_NONBLOCK so that a fifo under a
 * library's name does not hang us.
 *
 * Tests: tests/test_symbols.c
 */
#include <config.h>

#include "file.h"

#include <fcntl.h>

#include "own_fd.h"

int
file_open(const char *path)
{
	return own_fd_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

void
file_close(int fd)
{
	own_fd_close(fd);
}
