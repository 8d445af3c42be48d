/*
 * text.c - text that grows, and the three ways a value is written into it.
 *
 * What comes from a person (values, names of variables, file names) is never put
 * into a message raw: text_add_quoted() cuts it and makes control characters
 * visible, so that a value can neither forge a log line nor move a cursor.
 *
 * Why not open_memstream(3): glibc does not tell when a write finds no memory, the text is
 * cut then; and exit() in another thread takes the stream's buffer away while it is written.
 *
 * Tests: tests/base/test_text.c.
 */
#include <config.h>

#include "text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

static bool
make_room(struct text *t, size_t more)
{
	size_t room = t->room ? t->room : 128;
	char  *data;

	if (t->failed)
		return false;
	while (room <= t->size + more)
		room *= 2;
	if (room == t->room)
		return true;
	data = realloc(t->data, room);
	if (!data) {
		t->failed = true;
		return false;
	}
	t->data = data;
	t->room = room;
	return true;
}

void
text_add_bytes(struct text *t, const char *bytes, size_t size)
{
	if (!make_room(t, size))
		return;
	if (size > 0)
		memcpy(t->data + t->size, bytes, size);
	t->size += size;
	t->data[t->size] = '\0';
}

void
text_add_va(struct text *t, const char *format, va_list args)
{
	va_list again;
	int     n;

	va_copy(again, args);
	n = vsnprintf(NULL, 0, format, args);
	if (n < 0)
		t->failed = true;
	else if (make_room(t, (size_t)n)) {
		vsnprintf(t->data + t->size, (size_t)n + 1, format, again);
		t->size += (size_t)n;
	}
	va_end(again);
}

void
text_add(struct text *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_add_va(t, format, args);
	va_end(args);
}

int
text_collect(void *text, const void *data, size_t size)
{
	struct text *t = text;

	text_add_bytes(t, data, size);
	return t->failed ? -ENOMEM : 0;
}

void
text_add_visible(struct text *t, const char *value, size_t max)
{
	const char *s = value, *end = s + strnlen(value, max);

	while (s < end) {
		uint32_t c;
		size_t   size = utf8_character(s, SIZE_MAX, &c);

		if (size == 0 || utf8_is_control(c))
			text_add(t, "\\x%02x", (unsigned char)*s++);
		else {
			text_add_bytes(t, s, size);
			s += size;
		}
	}
	if (*s)
		text_add(t, "...");
}

void
text_add_quoted(struct text *t, const char *value)
{
	text_add_bytes(t, "'", 1);
	text_add_visible(t, value, TEXT_QUOTED_MAX);
	text_add_bytes(t, "'", 1);
}

/* \u and four digits. */
static size_t
json_number(uint32_t c, char ret[TEXT_JSON_MAX])
{
	static const char digits[] = "0123456789abcdef";

	ret[0] = '\\';
	ret[1] = 'u';
	for (int i = 0; i < 4; i++)
		ret[2 + i] = digits[c >> (12 - 4 * i) & 15];
	return 6;
}

size_t
text_json_next(const char **value, char ret[TEXT_JSON_MAX])
{
	uint32_t    c;
	const char *at = *value;
	size_t      size = *at ? utf8_character(at, SIZE_MAX, &c) : 0;

	if (!*at)
		return 0;
	*value += size ? size : 1;
	if (size == 0)
		return json_number(0xfffd, ret);
	if (c != '\n' && c != '\t' && (c < 0x20 || c == 0x7f))
		return json_number(c, ret);
	if (size > 1 || (c != '"' && c != '\\' && c != '\n' && c != '\t')) {
		memcpy(ret, at, size);
		return size;
	}
	ret[0] = '\\';
	ret[1] = c == '\n' ? 'n' : c == '\t' ? 't' : *at;
	return 2;
}

void
text_add_json(struct text *t, const char *value)
{
	char   piece[TEXT_JSON_MAX];
	size_t size;

	text_add_bytes(t, "\"", 1);
	while ((size = text_json_next(&value, piece)) > 0)
		text_add_bytes(t, piece, size);
	text_add_bytes(t, "\"", 1);
}

int
text_refuse(struct text *why, int r, const char *sentence)
{
	text_add(why, "%s", sentence);
	return r;
}

const char *
text_string(const struct text *t)
{
	return t->data ? t->data : "";
}

void
text_release(struct text *t)
{
	free(t->data);
	*t = (struct text)TEXT_INIT;
}
