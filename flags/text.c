/*
 * text.c - text that grows, and the three ways a value is written into it.
 *
 * What comes from a person (values, names of variables, file names) is never put
 * into a message raw: text_add_quoted() cuts it and makes control characters
 * visible, so that a value can neither forge a log line nor move a cursor.
 *
 * Why not open_memstream(3): a write that fails there is found at fclose() only,
 * and text of unknown length cannot be looked at in between.
 *
 * Tests: tests/flags/test_text.c.
 */
#include <config.h>

#include "text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

#define WORD_MAX 64 /* bytes of a word whose distance is looked at */

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

static void __attribute__((__format__(__printf__, 2, 0)))
add_formatted(struct text *t, const char *format, va_list args)
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
	add_formatted(t, format, args);
	va_end(args);
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

void
text_add_json(struct text *t, const char *value)
{
	text_add_bytes(t, "\"", 1);
	while (*value) {
		uint32_t c;
		size_t   size = utf8_character(value, SIZE_MAX, &c);

		if (size == 0) {
			text_add_bytes(t, "\\ufffd", 6);
			value++;
			continue;
		}
		if (c == '"' || c == '\\')
			text_add(t, "\\%c", *value);
		else if (c == '\n')
			text_add_bytes(t, "\\n", 2);
		else if (c == '\t')
			text_add_bytes(t, "\\t", 2);
		else if (c < 0x20 || c == 0x7f)
			text_add(t, "\\u%04x", c);
		else
			text_add_bytes(t, value, size);
		value += size;
	}
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

/* Room for one more, doubled each time the number of lines is a power of two. */
static char **
lines_room(const struct lines *l)
{
	if (l->count & (l->count - 1))
		return l->items;
	return realloc(l->items, (l->count ? l->count * 2 : 1) * sizeof(*l->items));
}

void
lines_add(struct lines *l, const char *format, ...)
{
	struct text t = TEXT_INIT;
	char      **items;
	va_list     args;

	va_start(args, format);
	add_formatted(&t, format, args);
	va_end(args);
	items = t.failed ? NULL : lines_room(l);
	if (!items) {
		l->failed = true;
		text_release(&t);
		return;
	}
	l->items = items;
	/* An empty format leaves no data: a line is never NULL. */
	items[l->count] = t.data ? t.data : strdup("");
	if (items[l->count])
		l->count++;
	else
		l->failed = true;
}

void
lines_release(struct lines *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->items[i]);
	free(l->items);
	*l = (struct lines){ NULL, 0, false };
}

bool
words_next(const char **cursor, const char **ret_word, size_t *ret_size)
{
	const char *s = *cursor;

	if (!s)
		return false;
	s += strspn(s, " \t\n");
	if (!*s)
		return false;
	*ret_word = s;
	*ret_size = strcspn(s, " \t\n");
	*cursor = s + *ret_size;
	return true;
}

unsigned
words_distance(const char *a, const char *b)
{
	unsigned rows[3][WORD_MAX + 1];
	size_t   na = strlen(a), nb = strlen(b);

	if (na > WORD_MAX || nb > WORD_MAX)
		return WORD_MAX;
	for (size_t j = 0; j <= nb; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);

			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
	}
	return rows[na % 3][nb];
}
