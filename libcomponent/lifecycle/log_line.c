/*
 * log_line.c - what one log line looks like.
 *
 *   text    2026-01-31T12:00:00.000Z info starting kind=heap file="a b"
 *   logfmt  time="2026-01-31T12:00:00.000Z" level=info msg="starting" kind=heap
 *   json    {"time":"2026-01-31T12:00:00.000Z","level":"info","msg":"starting","kind":"heap"}
 *
 * A line is always one line, and always whole: newlines, control characters and
 * broken UTF-8 in values are escaped.  A value that does not fit ends in "..." with
 * its quote and the line's brace closed behind it; fields after it are left out.
 * So nobody can forge a second line through a value, and every json line parses.
 *
 * No malloc, no stdio, no localtime(): the time is computed here, because libc
 * takes a lock for its time zone, which may be held for ever in a forked child.
 *
 * Tests: tests/lifecycle/test_log.c.
 */
#include <config.h>

#include "log.h"

#include <string.h>

#include "utc.h"
#include "utf8.h"

/* Room kept for what closes a cut line: ..."}\n */
#define LINE_RESERVE 8

struct line {
	char           *buf;
	size_t          used;
	bool            cut;
	enum log_format format;
};

static const char *const level_names[] = {
	[COMPONENT_LOG_ERROR] = "error",
	[COMPONENT_LOG_WARNING] = "warning",
	[COMPONENT_LOG_INFO] = "info",
	[COMPONENT_LOG_DEBUG] = "debug",
};

/* All of it or, when it does not fit, nothing from now on. */
static void
put(struct line *l, const char *bytes, size_t size)
{
	if (l->cut || l->used + size > LOG_LINE_MAX - LINE_RESERVE) {
		l->cut = true;
		return;
	}
	memcpy(l->buf + l->used, bytes, size);
	l->used += size;
}

static void
puts_(struct line *l, const char *text)
{
	put(l, text, strlen(text));
}

/* What closes things is written into the room kept for it. */
static void
put_close(struct line *l, const char *text)
{
	size_t size = strlen(text);

	if (l->used + size > LOG_LINE_MAX)
		return;
	memcpy(l->buf + l->used, text, size);
	l->used += size;
}

static void
put_number(struct line *l, int64_t value, int digits)
{
	char text[20];

	for (int i = digits - 1; i >= 0; i--, value /= 10)
		text[i] = (char)('0' + value % 10);
	put(l, text, (size_t)digits);
}

static void
put_time(struct line *l, int64_t unix_ms)
{
	const char *marks = "--T::.";
	struct utc  at;

	if (unix_ms < 0)
		unix_ms = 0; /* a clock before 1970 is not set */
	utc_from_unix(unix_ms / 1000, &at);
	const int64_t parts[] = { at.year, at.month, at.day, at.hour, at.minute, at.second };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		put_number(l, parts[i], i == 0 ? 4 : 2);
		put(l, marks + i, 1);
	}
	put_number(l, unix_ms % 1000, 3);
	puts_(l, "Z");
}

static void
put_escape(struct line *l, const char *start, uint32_t value, int digits)
{
	static const char hex[] = "0123456789abcdef";
	char              text[8];
	size_t            used = strlen(start);

	memcpy(text, start, used);
	while (digits > 0)
		text[used++] = hex[value >> 4 * --digits & 15];
	put(l, text, used);
}

static void
put_character(struct line *l, const char *text, size_t size, uint32_t c, bool quoted)
{
	if (size == 0 && l->format == LOG_JSON)
		puts_(l, "\\ufffd");
	else if (size == 0)
		put_escape(l, "\\x", (unsigned char)text[0], 2);
	else if (quoted && (c == '"' || c == '\\'))
		put(l, c == '"' ? "\\\"" : "\\\\", 2);
	else if (c == '\n')
		puts_(l, "\\n");
	else if (c == '\r')
		puts_(l, "\\r");
	else if (c == '\t')
		puts_(l, "\\t");
	else if (utf8_is_control(c) || c == 0x2028 || c == 0x2029)
		put_escape(l, l->format == LOG_JSON || c > 0xff ? "\\u" : "\\x", c,
			l->format == LOG_JSON || c > 0xff ? 4 : 2);
	else
		put(l, text, size);
}

/* The characters of a value; a cut one ends in "...". */
static void
put_escaped(struct line *l, const char *value, bool quoted)
{
	bool was_cut = l->cut;

	while (*value && !l->cut) {
		uint32_t c = 0;
		size_t   size = utf8_character(value, SIZE_MAX, &c);

		put_character(l, value, size, c, quoted);
		value += size ? size : 1;
	}
	if (l->cut && !was_cut)
		put_close(l, "...");
}

/* Without quotes: what no reader of logfmt splits or unescapes. */
static bool
is_plain(const char *value)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/@^+";

	return *value && !value[strspn(value, plain)];
}

static bool
is_reserved(const char *key)
{
	return !strcmp(key, "time") || !strcmp(key, "level") || !strcmp(key, "msg");
}

/* A key is a word; what could end it early becomes '_'. */
static void
put_key(struct line *l, const char *key)
{
	if (is_reserved(key))
		puts_(l, "fields.");
	for (; *key; key++) {
		char c = *key;

		if (c <= ' ' || c == '=' || c == '"' || c == '\\' || c >= 0x7f)
			c = '_';
		put(l, &c, 1);
	}
}

/* Whatever comes before the value goes in whole, or the field not at all. */
static void
put_field(struct line *l, const struct component_log_field *field, bool bare)
{
	const char *value = field->value ? field->value : "(null)", *key = field->key ? field->key : "no_key";
	bool        quoted = !bare && (l->format == LOG_JSON || !is_plain(value));
	size_t      before = l->used;

	if (l->cut)
		return;
	puts_(l, l->format == LOG_JSON ? ",\"" : " ");
	put_key(l, key);
	puts_(l, l->format == LOG_JSON ? "\":" : "=");
	puts_(l, quoted ? "\"" : "");
	if (l->cut) {
		l->used = before;
		return;
	}
	if (bare) /* whole, too: half a number would be another one */
		puts_(l, value);
	else
		put_escaped(l, value, quoted);
	if (bare && l->cut)
		l->used = before;
	if (quoted)
		put_close(l, "\"");
}

const char *
log_level_name(enum component_log_level level)
{
	return level_names[level <= COMPONENT_LOG_DEBUG ? level : COMPONENT_LOG_DEBUG];
}

size_t
log_line(char *buf, enum log_format format, int64_t unix_ms, enum component_log_level level,
	const char *message, const struct component_log_field *fields, uint32_t bare, size_t count)
{
	struct line line = { .buf = buf, .format = format };
	const char *name = log_level_name(level);

	puts_(&line, format == LOG_JSON ? "{\"time\":\"" : format == LOG_LOGFMT ? "time=\"" : "");
	put_time(&line, unix_ms);
	puts_(&line, format == LOG_JSON ? "\",\"level\":\"" : format == LOG_LOGFMT ? "\" level=" : " ");
	puts_(&line, name);
	puts_(&line, format == LOG_JSON ? "\",\"msg\":\"" : format == LOG_LOGFMT ? " msg=\"" : " ");
	put_escaped(&line, message ? message : "(null)", format != LOG_TEXT);
	if (format != LOG_TEXT)
		put_close(&line, "\"");
	for (size_t i = 0; i < count; i++)
		put_field(&line, &fields[i], i < LOG_FIELDS_MAX && bare >> i & 1);
	put_close(&line, format == LOG_JSON ? "}\n" : "\n");
	return line.used;
}
