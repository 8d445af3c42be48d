/*
 * text.h - text that grows.
 *
 * A failed allocation is remembered instead of reported each time: write all, then ask once
 * (failed).
 *
 *   memory   data is malloc'd; text_release() frees it, or who takes it
 *   threads  one at a time
 *   source   libcomponent/base/text.c
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <component/export.h>

/* Bytes of somebody's value that a message repeats; the rest becomes "...". */
#define TEXT_QUOTED_MAX 80

struct text {
	char  *data; /* NULL while empty */
	size_t size; /* without the NUL */
	size_t room;
	bool   failed;
};

#define TEXT_INIT { NULL, 0, 0, false }

void text_add(struct text *t, const char *format, ...) COMPONENT_PRINTF(2, 3);
void text_add_va(struct text *t, const char *format, va_list args)
	__attribute__((__format__(__printf__, 2, 0)));
void text_add_bytes(struct text *t, const char *bytes, size_t size);
/* The same for who writes by a callback, such as an encoder; text: a struct text.  0 or -ENOMEM. */
int  text_collect(void *text, const void *data, size_t size);
/* At most max bytes and "..."; control characters as \x1b. */
void text_add_visible(struct text *t, const char *value, size_t max);
/* 'value', cut after TEXT_QUOTED_MAX bytes, likewise. */
void text_add_quoted(struct text *t, const char *value);
/* "value" as JSON wants it; bytes that are not UTF-8 become U+FFFD. */
void text_add_json(struct text *t, const char *value);
/* The same for who has no malloc: the next character of *value as it stands between the quotes, which
 * takes *value on.  How many bytes of ret that is; 0: there is none.  Signal-safe. */
#define TEXT_JSON_MAX 8
size_t text_json_next(const char **value, char ret[TEXT_JSON_MAX]);
/* Adds the sentence, and returns r. */
int  text_refuse(struct text *why, int r, const char *sentence);
/* Never NULL. */
const char *text_string(const struct text *t);
void text_release(struct text *t);

#endif
