/*
 * utf8.h - characters of UTF-8, and strings made safe to print.
 *
 *   signals  safe, but for utf8_clean()
 *   source   libcomponent/base/utf8.c
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"

/* Bytes of the character at s, of which there are size, and which one it is; 0: it is none.  size is
 * SIZE_MAX where a NUL ends the string: that is a character of one byte. */
size_t utf8_character(const char *s, size_t size, uint32_t *ret);
/* U+0080 to U+009F move cursors, too. */
static inline bool
utf8_is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

/* Bytes of what is kept of a text of at most max: whole characters. */
size_t utf8_cut(const char *text, size_t max);
/* Valid UTF-8 without control characters. */
bool   utf8_is_clean(const char *s, size_t size);
/* Makes each byte that is not so a '?'. */
void   utf8_mask(char *s, size_t size);
/* A copy so masked; NULL without memory. */
char  *utf8_clean(struct arena *a, const char *s, size_t size);

#endif
