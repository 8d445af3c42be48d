/*
 * dump_to_fd.c - all threads' stacks to a descriptor, for a process that may hang.
 *
 * It is what SIGQUIT and SIGUSR2 print.  Some thread may hold malloc's lock, and another
 * the loader's; so neither is entered, no stream is used, and every wait has an end.
 * Profiling need not be on: the tables for walking are made for this dump alone.
 *
 * What a stranger would get wrong: packed symbol tables are left out unless profiling has
 * been started, which loads what unpacks; and who reads our standard error may be what
 * hangs, so a write waits for room, and not for ever.  And who has gone away must not end the
 * daemon by SIGPIPE: this is the caller's thread.
 *
 * Tests: tests/threads/hanging_daemon.t, tests/serve/test_profile_write.c.
 */
#include <config.h>

#include <component/profiler.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "dump/threads.h"
#include "fd.h"
#include "format.h"
#include "symbols.h"

#define SYMBOL_BYTES ((size_t)64 << 20) /* names and lines, at most */
#define PIECE_BYTES  ((size_t)4096)     /* poll() promises that so much fits a pipe */
#define STALLED_MS   5000               /* nobody reads: the rest is dropped */

/* An encode_write_fn. */
static int
write_all(void *arg, const void *data, size_t size)
{
	struct pollfd room = { *(int *)arg, POLLOUT, 0 };
	const char   *at = data;
	ssize_t       n;
	int           r;

	while (size > 0) {
		r = poll(&room, 1, STALLED_MS);
		if (r == 0)
			return -ETIMEDOUT;
		n = r < 0 ? -errno : fd_write_guarded(room.fd, at, size < PIECE_BYTES ? size : PIECE_BYTES);
		if (n < 0 && n != -EINTR && n != -EAGAIN)
			return (int)n;
		if (n > 0) {
			at += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

int
component_dump_threads(int fd)
{
	const struct format *format = format_of_debug(PRODUCT_DUMP, PRODUCT_TEXT_COUNTS, 2);
	struct symbols      *symbols = NULL;
	struct product       p = { .type = PRODUCT_DUMP };
	int                  r, cancel, saved = errno;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	r = format ? threads_dump_of(&p.dump, THREADS_OWN | THREADS_NAMES | THREADS_LOCKS | THREADS_OWN_LAST) : -ENOTSUP;
	if (r)
		goto out;
	r = symbols_open(SYMBOL_BYTES, &symbols);
	if (!r)
		r = format_write(format, &p, NULL, symbols, write_all, &fd);
	symbols_close(symbols);
	product_release(&p);
out:
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	return r;
}
