/*
 * out.c - a readable name as it grows, within limits.
 *
 * What a stranger would get wrong: a name of 250 bytes can stand for 500 MB, and for nothing at
 * all by as long a way, so both what is written and the steps are counted.  A name that is
 * too long is cut; one that takes too many steps, or is too deep, is none.
 *
 * Tests: tests/symbols/test_demangle.c
 */
#include <config.h>

#include "room.h"

#include <string.h>

void
demangle_out_start(struct demangle_out *o)
{
	o->size = 0;
	o->steps = o->depth = 0;
	o->bad = false;
}

void
demangle_put(struct demangle_out *o, const char *text, size_t size)
{
	size_t room = DEMANGLE_RESULT_MAX - o->size;

	if (size > room)
		size = room;
	memcpy(o->text + o->size, text, size);
	o->size += size;
}

void
demangle_put_string(struct demangle_out *o, const char *text)
{
	demangle_put(o, text, strlen(text));
}

void
demangle_put_number(struct demangle_out *o, uint64_t n)
{
	char  digits[20];
	char *at = digits + sizeof(digits);

	do {
		*--at = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	demangle_put(o, at, (size_t)(digits + sizeof(digits) - at));
}

void
demangle_put_character(struct demangle_out *o, uint32_t c)
{
	char     utf8[4];
	unsigned n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
		o->bad = true;
		return;
	}
	for (unsigned i = n; i-- > 1; c >>= 6)
		utf8[i] = (char)(0x80 | (c & 0x3f));
	utf8[0] = (char)(n == 1 ? c : (0xf00 >> n & 0xff) | c);
	demangle_put(o, utf8, n);
}

char
demangle_last(const struct demangle_out *o)
{
	return o->size ? o->text[o->size - 1] : '\0';
}

unsigned
demangle_digit(char c)
{
	return c >= '0' && c <= '9' ? (unsigned)(c - '0') :
	       c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 10 :
	       c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') + 36 :
				      DEMANGLE_DIGITS;
}

bool
demangle_enter(struct demangle_out *o)
{
	if (++o->depth > DEMANGLE_DEPTH_MAX || ++o->steps > DEMANGLE_STEPS_MAX)
		o->bad = true;
	return !o->bad && o->size < DEMANGLE_RESULT_MAX;
}

void
demangle_leave(struct demangle_out *o)
{
	o->depth--;
}
