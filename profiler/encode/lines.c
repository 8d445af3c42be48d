/*
 * lines.c - text, written through a callback in pieces.
 *
 * Numbers with a point are made of integers, because printf("%f") follows the
 * daemon's locale and pprof's units are the same everywhere.
 *
 * Tests: tests/encode/test_text.c
 */
#include <config.h>

#include "lines.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

#define PIECE     ((size_t)64 << 10) /* bytes handed to the callback at once, at most */
#define PRINT_MAX ((size_t)512)      /* bytes of one lines_print() */

int
lines_open(struct lines *l, struct arena *a, encode_write_fn *write, void *arg)
{
	*l = (struct lines){ .write = write, .arg = arg, .buf = arena_alloc(a, PIECE) };
	return l->buf ? 0 : -ENOMEM;
}

static void
flush(struct lines *l)
{
	if (l->used && !l->error)
		l->error = l->write(l->arg, l->buf, l->used);
	l->used = 0;
}

void
lines_print(struct lines *l, const char *format, ...)
{
	va_list args;
	int     n;

	if (PIECE - l->used < PRINT_MAX)
		flush(l);
	va_start(args, format);
	n = vsnprintf(l->buf + l->used, PRINT_MAX, format, args);
	va_end(args);
	if (n > 0)
		l->used += (size_t)n < PRINT_MAX ? (size_t)n : PRINT_MAX - 1;
}

void
lines_bytes(struct lines *l, const void *data, size_t size)
{
	const char *from = data;

	for (size_t n; size; size -= n, from += n) {
		if (l->used == PIECE)
			flush(l);
		n = size < PIECE - l->used ? size : PIECE - l->used;
		memcpy(l->buf + l->used, from, n);
		l->used += n;
	}
}

void
lines_text(struct lines *l, const char *text)
{
	lines_bytes(l, text, strlen(text));
}

void
lines_json(struct lines *l, const char *text)
{
	char   piece[TEXT_JSON_MAX];
	size_t size;

	lines_text(l, "\"");
	while ((size = text_json_next(&text, piece)) > 0)
		lines_bytes(l, piece, size);
	lines_text(l, "\"");
}

int
lines_close(struct lines *l)
{
	flush(l);
	return l->error < 0 ? l->error : 0;
}

struct unit {
	const char *name;
	uint64_t    factor;
};

static const struct unit times[] = {
	{ "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 }, { NULL, 0 },
};
static const struct unit sizes[] = {
	{ "PB", 1ULL << 50 }, { "TB", 1ULL << 40 }, { "GB", 1ULL << 30 },
	{ "MB", 1 << 20 }, { "kB", 1 << 10 }, { "B", 1 }, { NULL, 0 },
};

void
lines_value(char *buf, int64_t value, const char *unit)
{
	const struct unit *u = !strcmp(unit, "nanoseconds") ? times : !strcmp(unit, "bytes") ? sizes : NULL;
	uint64_t           v = lines_amount(value);
	const char        *sign = value < 0 ? "-" : "";
	unsigned long long hundredths;

	if (!u || !v) {
		snprintf(buf, LINES_NUMBER_MAX, "%s%llu", sign, (unsigned long long)v);
		return;
	}
	while (v < u->factor)
		u++;
	hundredths = (unsigned long long)(((unsigned __int128)v * 100 + u->factor / 2) / u->factor);
	if (hundredths % 100)
		snprintf(buf, LINES_NUMBER_MAX, "%s%llu.%02llu%s", sign, hundredths / 100, hundredths % 100, u->name);
	else
		snprintf(buf, LINES_NUMBER_MAX, "%s%llu%s", sign, hundredths / 100, u->name);
}

void
lines_percent(char *buf, int64_t value, uint64_t total)
{
	uint64_t           v = lines_amount(value);
	unsigned long long hundredths = 0;

	if (total)
		hundredths = (unsigned long long)(((unsigned __int128)v * 10000 + total / 2) / total);
	snprintf(buf, LINES_NUMBER_MAX, "%s%llu.%02llu%%", value < 0 ? "-" : "", hundredths / 100, hundredths % 100);
}
