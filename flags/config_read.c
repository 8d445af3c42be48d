/*
 * config_read.c - the bytes of a config file, without waiting for anybody.
 *
 * A daemon must not hang in open() because --config names a FIFO, nor read a device
 * until memory is gone; and a descriptor of ours is never 0, 1 or 2, which a daemon
 * may have closed.  A pipe is refused although it could be read once: the reload
 * would find it empty and take every option back.
 *
 * Tests: tests/test_flags_file.c.
 */
#include <config.h>

#include "config_read.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "own_fd.h"

/* Opened without waiting for anybody, and never as 0, 1 or 2. */
static int
open_config(const char *path)
{
	struct stat st;
	int fd = own_fd_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	int r = fd < 0 ? fd : 0;

	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	else if (r == 0 && S_ISDIR(st.st_mode))
		r = -EISDIR;
	else if (r == 0 && !S_ISREG(st.st_mode) && !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)))
		r = -EMEDIUMTYPE; /* a pipe would be empty when it is read again; /dev/null always is */
	if (r < 0)
		own_fd_close(fd);
	return r < 0 ? r : fd;
}

int
config_read(const char *path, struct text *t)
{
	char buf[16 * 1024];
	int  fd = open_config(path);
	int  r = fd < 0 ? fd : 0;

	while (r == 0) {
		ssize_t n = read(fd, buf, sizeof(buf));

		if (n == 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r = -errno;
		else
			text_add_bytes(t, buf, (size_t)n);
		if (t->failed)
			r = -ENOMEM;
		else if (t->size > CONFIG_BYTES_MAX)
			r = -EFBIG;
	}
	own_fd_close(fd);
	return r;
}
