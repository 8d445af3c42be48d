/*
 * utf8.c - strings from files, made safe to print.
 *
 * Names of symbols and files are bytes that anybody may have written.  Stores of
 * profiles refuse a profile with a string that is not UTF-8, and a line break in a
 * name would forge a line of the text formats: what is neither is shown as '?'.
 *
 * Tests: tests/symbols/test_symbols.c
 */
#include <config.h>

#include "utf8.h"

#include <stdint.h>

/* Bytes of the character at s, 0 if it is none or a control character. */
static size_t
character(const unsigned char *s, size_t size)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t              c;
	size_t                n;

	if (s[0] < 0x80)
		n = 1;
	else if (s[0] < 0xc0 || s[0] >= 0xf8)
		n = 0;
	else
		n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (n == 1)
		return s[0] >= 0x20 && s[0] != 0x7f;
	if (!n || n > size)
		return 0;
	c = s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	/* Too long a form, a surrogate, past the end, or C1 control. */
	if (c < smallest[n] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff || (c >= 0x80 && c < 0xa0))
		return 0;
	return n;
}

bool
utf8_is_clean(const char *s, size_t size)
{
	for (size_t i = 0, n; i < size; i += n) {
		n = character((const unsigned char *)s + i, size - i);
		if (!n)
			return false;
	}
	return true;
}

char *
utf8_clean(struct arena *a, const char *s, size_t size)
{
	char *copy = arena_strndup(a, s, size);

	if (!copy)
		return NULL;
	for (size_t i = 0, n; i < size; i += n ? n : 1) {
		n = character((const unsigned char *)s + i, size - i);
		if (!n)
			copy[i] = '?';
	}
	return copy;
}
