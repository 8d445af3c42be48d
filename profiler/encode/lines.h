/*
 * lines.h - text, written through a callback in pieces.
 */
#ifndef ENCODE_LINES_H
#define ENCODE_LINES_H

#include <stdint.h>

#include "arena.h"
#include "encode.h"

#define LINES_NUMBER_MAX 40 /* bytes of a formatted value, its NUL included */

struct lines {
	encode_write_fn *write;
	void            *arg;
	char            *buf;
	size_t           used;
	int              error; /* the first one; nothing is written after it */
};

/* The buffer is the arena's.  0 or -ENOMEM. */
int  lines_open(struct lines *l, struct arena *a, encode_write_fn *write, void *arg);
void lines_print(struct lines *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For texts of any length. */
void lines_text(struct lines *l, const char *text);
/* "text" as JSON wants it. */
void lines_json(struct lines *l, const char *text);
/* For what is no text, too. */
void lines_bytes(struct lines *l, const void *data, size_t size);
/* Writes what is left; the first error of all, or 0. */
int  lines_close(struct lines *l);

/* Without its sign. */
static inline uint64_t
lines_amount(int64_t value)
{
	return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

/* A value as pprof shows it: "1.20s", "512.50kB", "17".  Never uses the locale. */
void lines_value(char *buf, int64_t value, const char *unit);
/* "12.34%" of total. */
void lines_percent(char *buf, int64_t value, uint64_t total);

#endif
