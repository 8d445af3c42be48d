/*
 * log.c - log lines out of the process, from any thread, without a lock.
 *
 * A line is made on the stack and leaves by one write() of at most PIPE_BUF
 * bytes, so lines of threads, and of processes that share the descriptor, do not
 * mix, and no thread waits for another's line.
 *
 * What surprises: reopening keeps the descriptor's number (dup3 over it), so a
 * thread that is just writing needs no lock either.  A line that cannot be
 * written is counted, and the count is told by the next one that can.  A reader that
 * went away, and a file at the limit of RLIMIT_FSIZE, raise no signal: fd_write_guarded().
 *
 * After fork() the child's file is closed; its next line opens it by name again.
 *
 * Why not stdio or syslog(): both lock, and a child forked meanwhile never gets
 * that lock; stdio also allocates.
 *
 * Tests: tests/lifecycle/test_log.c.
 */
#include <config.h>

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "absolute_path.h"
#include "clock.h"
#include "fd.h"

#define LOG_FILE_MODE 0644 /* less the umask */

static int
file_open(const char *path)
{
	/* Not blocking while it opens: a FIFO without a reader is an error, not
	 * a daemon that hangs. */
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		LOG_FILE_MODE);
	int flags;

	fd = fd_keep(fd);
	if (fd < 0)
		return fd;
	flags = fcntl(fd, F_GETFL);
	if (flags >= 0)
		fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	return fd;
}

void
log_init(struct log *log)
{
	static const struct component_metric_spec written = COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_COUNTER,
		.name = "component_log_lines_total", .help = "Log lines that were written, by level.", .labels = { "level" });
	static const struct component_metric_spec failed = COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_COUNTER,
		.name = "component_log_lost_lines_total", .help = "Log lines that could not be written.");
	struct component_metric *m;

	*log = (struct log) { .level = COMPONENT_LOG_INFO, .format = LOG_TEXT, .fd = STDERR_FILENO };
	component_metric_new(&written, &m, NULL);
	for (int level = 0; level <= COMPONENT_LOG_DEBUG; level++)
		log->written[level] = component_counter_of(m, log_level_name((enum component_log_level)level), NULL);
	component_metric_new(&failed, &m, NULL);
	log->failed = component_counter_of(m, NULL);
}

int
log_open(struct log *log, const char *path, struct component_error *err)
{
	char *copy = NULL;
	int   fd;

	log_close(log);
	if (!path || !path[0])
		return 0;
	copy = absolute_path(path);
	if (!copy)
		return -ENOMEM;
	fd = file_open(copy);
	if (fd < 0) {
		component_error_set(err,
			"option '--log-file': cannot open '%s': %s; name a file in a directory "
			"this user may write to, or leave the option out for stderr",
			copy, strerror(-fd));
		free(copy);
		return fd;
	}
	log->path = copy;
	log->fd = fd;
	return 0;
}

int
log_reopen(struct log *log, struct component_error *err)
{
	int fd, moved;

	if (!log->path)
		return 0;
	fd = file_open(log->path);
	if (fd < 0) {
		component_error_set(err, "log file '%s' cannot be opened again: %s; going on with the old one",
			log->path, strerror(-fd));
		return fd;
	}
	if (log->fd == LOG_FD_CLOSED) {
		log->fd = fd;
		return 0;
	}
	moved = dup3(fd, log->fd, O_CLOEXEC);
	if (moved < 0)
		moved = -errno;
	close(fd);
	return moved < 0 ? moved : 0;
}

void
log_close(struct log *log)
{
	int fd = log->fd;

	log->fd = STDERR_FILENO;
	if (log->path && fd > STDERR_FILENO)
		close(fd);
	free(log->path);
	log->path = NULL;
}

void
log_fork_child(struct log *log)
{
	int fd = log->fd;

	if (!log->path || fd == LOG_FD_CLOSED)
		return;
	log->fd = LOG_FD_CLOSED;
	close(fd);
}

/* ---- writing ---- */

/* In a forked child the first line opens the file; of racing threads one wins. */
static int
log_fd(struct log *log)
{
	int fd = log->fd;
	int closed = LOG_FD_CLOSED;

	if (fd != LOG_FD_CLOSED)
		return fd;
	fd = file_open(log->path);
	if (fd < 0)
		return fd;
	if (atomic_compare_exchange_strong(&log->fd, &closed, fd))
		return fd;
	close(fd);
	return closed;
}

static bool
line_out(struct log *log, const char *buf, size_t size)
{
	char    newline = '\n';
	int     fd = log_fd(log);
	ssize_t wrote;

	if (fd < 0)
		return false;
	/* A disk that was full left half a line: begin on a new one. */
	if (log->torn && fd_write_guarded(fd, &newline, 1) == 1)
		log->torn = false;
	wrote = fd_write_guarded(fd, buf, size);
	if (wrote > 0 && (size_t)wrote < size)
		log->torn = true;
	return wrote == (ssize_t)size;
}

/* The lines that got lost before are told when one gets through. */
static void
tell_lost(struct log *log)
{
	struct component_log_field field = { "lines", NULL };
	char                       number[16], buf[LOG_LINE_MAX];
	unsigned                   lost = atomic_exchange(&log->lost, 0);

	if (!lost)
		return;
	snprintf(number, sizeof(number), "%u", lost);
	field.value = number;
	if (!line_out(log, buf, log_line(buf, (enum log_format)log->format, clock_ns(CLOCK_REALTIME) / 1000000,
			COMPONENT_LOG_WARNING, "log lines were lost", &field, 0, 1)))
		atomic_fetch_add(&log->lost, lost);
}

static void
lose(struct log *log)
{
	atomic_fetch_add(&log->lost, 1);
	component_counter_add(log->failed, 1);
}

void
log_write(struct log *log, enum component_log_level level, const char *message,
	const struct component_log_field *fields, size_t count)
{
	log_write_bare(log, level, message, fields, 0, count);
}

void
log_write_bare(struct log *log, enum component_log_level level, const char *message,
	const struct component_log_field *fields, uint32_t bare, size_t count)
{
	char buf[LOG_LINE_MAX];
	int  saved = errno;

	if ((int)level > log->level)
		return;
	if (line_out(log, buf, log_line(buf, (enum log_format)log->format, clock_ns(CLOCK_REALTIME) / 1000000, level,
			message, fields, bare, count))) {
		component_counter_add(log->written[level <= COMPONENT_LOG_DEBUG ? level : COMPONENT_LOG_DEBUG], 1);
		tell_lost(log);
	} else {
		lose(log);
	}
	errno = saved;
}

void
log_write_soon(struct log *log, enum component_log_level level, const char *message,
	const struct component_log_field *fields, size_t count)
{
	struct pollfd room = { .events = POLLOUT };
	int           saved = errno, r;

	if ((int)level > log->level)
		return;
	room.fd = log_fd(log);
	/* A pipe says POLLOUT when PIPE_BUF bytes fit, which is a whole line. */
	r = room.fd < 0 ? 1 : poll(&room, 1, LOG_ROOM_WAIT_MS);
	if (r < 0) /* a signal: not as long again */
		r = poll(&room, 1, 0);
	if (r == 1)
		log_write(log, level, message, fields, count);
	else
		lose(log);
	errno = saved;
}
