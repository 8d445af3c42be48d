/*
 * punycode.c - identifiers that are not ASCII, as RFC 3492 writes them.
 *
 *     gdel_5qa ──▶ gödel: the plain characters, then where the others are put in, one by one
 *
 * What a stranger would get wrong: the plain part ends with the last '_', where the RFC has '-'.
 *
 * Tests: tests/symbols/test_demangle.c
 */
#include <config.h>

#include "room.h"

#include <string.h>

/* The constants are the RFC's. */
enum { BASE = 36, T_MIN = 1, T_MAX = 26, SKEW = 38, DAMP = 700, BIAS_FIRST = 72, CODE_FIRST = 128 };

#define DIGITS_MAX 8 /* of one number: more are more than 32 bits */

/* a to z, then 0 to 9. */
static uint32_t
digit_of(char c)
{
	return c >= 'a' && c <= 'z' ? (uint32_t)(c - 'a') : c >= '0' && c <= '9' ? (uint32_t)(c - '0') + 26 : BASE;
}

/* A number of as many digits as it takes, the least first; false: it is none. */
static bool
number_read(const char **at, const char *end, uint32_t bias, uint64_t *ret)
{
	uint64_t n = 0, weight = 1;

	for (uint32_t k = BASE; *at < end && k <= BASE * DIGITS_MAX; k += BASE) {
		uint32_t digit = digit_of(*(*at)++), t = k <= bias ? T_MIN : k >= bias + T_MAX ? T_MAX : k - bias;

		n += digit * weight;
		if (digit == BASE || n > UINT32_MAX)
			return false;
		*ret = n;
		if (digit < t)
			return true;
		weight *= BASE - t;
	}
	return false;
}

static uint32_t
bias_next(uint64_t delta, size_t count, bool is_first)
{
	uint32_t bias = 0;

	delta /= is_first ? DAMP : 2;
	delta += delta / count;
	for (; delta > (BASE - T_MIN) * T_MAX / 2; bias += BASE)
		delta /= BASE - T_MIN;
	return bias + (uint32_t)((BASE - T_MIN + 1) * delta / (delta + SKEW));
}

size_t
demangle_punycode(const char *text, size_t size, uint32_t chars[DEMANGLE_PUNYCODE_MAX])
{
	const char *at = text, *end = text + size, *plain = end;
	size_t      count = 0;
	uint32_t    code = CODE_FIRST, place = 0, bias = BIAS_FIRST;
	uint64_t    delta;

	while (plain > at && plain[-1] != '_')
		plain--;
	if (plain - at > DEMANGLE_PUNYCODE_MAX)
		return 0;
	while (at + 1 < plain)
		chars[count++] = (unsigned char)*at++;
	for (at = plain; at < end; place++) {
		const bool is_first = at == plain;

		if (!number_read(&at, end, bias, &delta) || count == DEMANGLE_PUNYCODE_MAX ||
		    place + delta > UINT32_MAX)
			return 0;
		place += (uint32_t)delta;
		count++;
		code += place / (uint32_t)count;
		place %= (uint32_t)count;
		bias = bias_next(delta, count, is_first);
		memmove(chars + place + 1, chars + place, (count - 1 - place) * sizeof(*chars));
		chars[place] = code;
	}
	return count;
}
