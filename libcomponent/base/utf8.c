/*
 * utf8.c - characters of UTF-8, and strings made safe to print.
 *
 * Names of symbols and files are bytes that anybody may have written, and so are values of flags and of
 * log lines.  Stores of profiles refuse a profile with a string that is not UTF-8, and a line break in a
 * name would forge a line of the text formats: utf8_mask() makes it a '?'.
 *
 * Tests: tests/symbols/test_symbols.c, tests/labels/test_labels.c, tests/lifecycle/test_log.c
 */
#include <config.h>

#include "utf8.h"

#include <string.h>

size_t
utf8_character(const char *s, size_t size, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t              c = (unsigned char)s[0];
	size_t                n = c < 0x80 ? 1 : c < 0xc0 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf8 ? 4 : 0;

	if (!n || n > size)
		return 0;
	if (n > 1)
		c &= 0x7fu >> n;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	/* Too long a form, past the end, or a surrogate. */
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*ret = c;
	return n;
}

size_t
utf8_cut(const char *text, size_t max)
{
	size_t n = strnlen(text, max);

	if (n == max)
		while (n > 0 && (text[n] & 0xc0) == 0x80)
			n--;
	return n;
}

/* Bytes of the character at s, 0 if it is none or a control character. */
static size_t
clean_character(const char *s, size_t size)
{
	uint32_t c;
	size_t   n = utf8_character(s, size, &c);

	return n && !utf8_is_control(c) ? n : 0;
}

bool
utf8_is_clean(const char *s, size_t size)
{
	for (size_t i = 0, n; i < size; i += n) {
		n = clean_character(s + i, size - i);
		if (!n)
			return false;
	}
	return true;
}

void
utf8_mask(char *s, size_t size)
{
	for (size_t i = 0, n; i < size; i += n ? n : 1) {
		n = clean_character(s + i, size - i);
		if (!n)
			s[i] = '?';
	}
}

char *
utf8_clean(struct arena *a, const char *s, size_t size)
{
	char *copy = arena_strndup(a, s, size);

	if (copy)
		utf8_mask(copy, size);
	return copy;
}
