/*
 * words.c - lists of lines, and words of a row's member.
 *
 * Tests: tests/flags/test_words.c.
 */
#include <config.h>

#include "words.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

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
	text_add_va(&t, format, args);
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
