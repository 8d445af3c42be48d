/*
 * answer_fd.c - an answer to a descriptor: a file, a pipe, a socket, blocking or not.
 *
 * Tests: tests/serve/test_profile_write.c.
 */
#include <config.h>

#include "answer_fd.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

static int64_t
fd_write(struct answer *a, const void *data, size_t size)
{
	struct pollfd room = { ((struct answer_fd *)a)->fd, POLLOUT, 0 };
	const char   *p = data;
	ssize_t       n;

	while (size > 0) {
		n = write(room.fd, p, size);
		if (n >= 0) {
			p += n;
			size -= (size_t)n;
		} else if (errno == EAGAIN) {
			if (poll(&room, 1, ANSWER_STALL_SECONDS * 1000) == 0)
				return -ETIMEDOUT;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

static void
fd_begin(struct answer *a, int status, const struct answer_header *headers, int64_t size)
{
	(void)a;
	(void)status;
	(void)headers;
	(void)size;
}

static void
fd_end(struct answer *a)
{
	(void)a;
}

void
answer_fd_init(struct answer_fd *a, int fd)
{
	static const struct answer_sink sink = { fd_begin, fd_write, fd_end, fd_end };

	*a = (struct answer_fd){ .answer = { .sink = &sink, .ask = { .path = "", .peer = "", .prefix = "" } }, .fd = fd };
}
