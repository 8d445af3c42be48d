/*
 * log.h - log lines as text, logfmt or json, one write() each.
 */
#ifndef LIFECYCLE_LOG_H
#define LIFECYCLE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <component/error.h>
#include <component/log.h>
#include <component/metrics.h>

/* Bytes of a line with its newline.  PIPE_BUF: up to there a write to a pipe is
 * never mixed with another's.  What is longer ends in "...". */
#define LOG_LINE_MAX 4096

/* How long a line that must not block may wait for room in a pipe nobody reads, ms. */
#define LOG_ROOM_WAIT_MS 100

enum log_format { LOG_TEXT, LOG_LOGFMT, LOG_JSON };

struct log {
	_Atomic int      level;  /* lines above it are not written */
	_Atomic int      format; /* enum log_format */
	_Atomic int      fd;     /* LOG_FD_CLOSED: opened by the next line */
	_Atomic unsigned lost;   /* lines that could not be written, not yet told */
	_Atomic bool     torn;   /* the last line was written in part */
	struct component_counter *written[COMPONENT_LOG_DEBUG + 1], *failed; /* metrics */
	char            *path;   /* absolute; NULL: stderr */
};

#define LOG_FD_CLOSED (-1)

void log_init(struct log *log);
/* From now on into a file (NULL or "": stderr).  0 or a negative errno. */
int log_open(struct log *log, const char *path, struct component_error *err);
/* The same file by its name again, for log rotation; on failure the old one stays. */
int log_reopen(struct log *log, struct component_error *err);
void log_close(struct log *log);
void log_fork_child(struct log *log);

#define LOG_FIELDS_MAX 32 /* of one line */

/* errno is kept; any thread.  bare: a bit for each field whose value has no quotes. */
void log_write_bare(struct log *log, enum component_log_level level, const char *message,
	const struct component_log_field *fields, uint32_t bare, size_t count);
void log_write(struct log *log, enum component_log_level level, const char *message,
	const struct component_log_field *fields, size_t count);
/* The same for those who must not block: waits LOG_ROOM_WAIT_MS at most for room. */
void log_write_soon(struct log *log, enum component_log_level level, const char *message,
	const struct component_log_field *fields, size_t count);

const char *log_level_name(enum component_log_level level);
/* One line into buf of LOG_LINE_MAX bytes, newline included, without NUL;
 * returns its length. */
size_t log_line(char *buf, enum log_format format, int64_t unix_ms, enum component_log_level level,
	const char *message, const struct component_log_field *fields, uint32_t bare, size_t count);

#endif
