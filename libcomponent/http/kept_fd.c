/*
 * kept_fd.c - descriptors that are open for long, in a process whose program may close any.
 *
 * What a stranger would get wrong: a program that has closed our number may have it for itself
 * by now.  So what was behind it is noted, and looked at again before it is closed.
 *
 * Tests: tests/http/test_posted_calls.c, tests/serve/start_stop.t.
 */
#include <config.h>

#include "httpd_internal.h"

#include <sys/stat.h>
#include <unistd.h>

/* A daemon that closes every descriptor it does not know closes ours, too, and the
 * number may be its own file by now: never write there. */
bool
kept_fd_is(int fd, const struct httpd_was *was)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == was->dev && st.st_ino == was->ino;
}

void
kept_fd_set(_Atomic int *fd, struct httpd_was *was, int number)
{
	struct stat st;

	if (number >= 0 && fstat(number, &st) == 0)
		*was = (struct httpd_was){ st.st_dev, st.st_ino };
	atomic_store(fd, number);
}

void
kept_fd_close(_Atomic int *fd)
{
	sigset_t mask;
	int      was;

	our_fd_hold(&mask); /* a child must neither keep it nor close another's by its number */
	was = atomic_exchange(fd, -1);
	if (was >= 0)
		close(was);
	our_fd_release(&mask);
}

bool
kept_fd_close_ours(_Atomic int *fd, const struct httpd_was *was)
{
	bool ours;

	if (atomic_load(fd) < 0)
		return true;
	ours = kept_fd_is(*fd, was);
	if (ours)
		kept_fd_close(fd);
	atomic_store(fd, -1);
	return ours;
}
