/*
 * query.c - the query string as Go's Request.FormValue reads it.
 *
 * The first pair of a name wins; a pair with a bad escape or a ';' is left out,
 * never an error; names are case sensitive.  '+' is a blank, so "debug=+1" is
 * " 1", which is no number: that surprise is Go's, and scripts rely on the rest.
 *
 * Tests: tests/serve/test_params.c.
 */
#include <config.h>

#include "query.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* Decodes text[0..n) into buf, cut to size.  False: a bad escape. */
static bool
decode(const char *text, size_t n, char *buf, size_t size)
{
	size_t out = 0;

	for (size_t i = 0; i < n; i++) {
		char c = text[i];

		if (c == '+') {
			c = ' ';
		} else if (c == '%') {
			static const char digits[] = "0123456789abcdef";

			if (i + 2 >= n || !isxdigit((unsigned char)text[i + 1]) || !isxdigit((unsigned char)text[i + 2]))
				return false;
			c = (char)((strchr(digits, tolower((unsigned char)text[i + 1])) - digits) * 16 +
				(strchr(digits, tolower((unsigned char)text[i + 2])) - digits));
			i += 2;
		}
		if (out + 1 < size)
			buf[out++] = c;
	}
	buf[out] = '\0';
	return true;
}

bool
query_get(const char *query, const char *name, char *buf, size_t size)
{
	char key[64];

	while (query && *query) {
		size_t      n = strcspn(query, "&");
		const char *equals = memchr(query, '=', n);
		size_t      key_size = equals ? (size_t)(equals - query) : n;

		if (n > 0 && !memchr(query, ';', n) && decode(query, key_size, key, sizeof(key)) &&
		    !strcmp(key, name) &&
		    decode(equals ? equals + 1 : query + n, equals ? n - key_size - 1 : 0, buf, size))
			return true;
		query += n + (query[n] == '&');
	}
	buf[0] = '\0';
	return false;
}

/* Digits of that base, with a point; moves *at behind them.  False: none. */
static bool
mantissa(const char **at, int base, double *ret)
{
	double scale = 1, value = 0;
	bool   some = false, point = false;

	for (;; ++*at) {
		char c = (char)tolower((unsigned char)**at);
		int  digit = isdigit((unsigned char)c) ? c - '0' : base == 16 && c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

		if (digit < 0 && (c != '.' || point))
			break;
		if (digit < 0) {
			point = true;
			continue;
		}
		some = true;
		value = value * base + digit;
		if (point)
			scale *= base;
	}
	*ret = value / scale;
	return some;
}

/* Not strtod(), which reads the point of the daemon's locale. */
int
query_float(const char *text, double *ret)
{
	bool   negative = *text == '-', hex;
	double value, factor;
	int64_t power = 0;

	*ret = 0;
	text += *text == '-' || *text == '+';
	hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	text += hex ? 2 : 0;
	if (!mantissa(&text, hex ? 16 : 10, &value))
		return -EINVAL;
	if (tolower((unsigned char)*text) == (hex ? 'p' : 'e')) {
		if (query_int(text + 1, &power) == -EINVAL)
			return -EINVAL;
		text = "";
	}
	if (*text)
		return -EINVAL;
	factor = hex ? 2 : 10;
	for (; power > 0 && value <= 1e300 && value > 0; power--)
		value *= factor;
	for (; power < 0 && value > 1e-300; power++)
		value /= factor;
	if (!(value <= 1e300))
		value = 1e300;
	*ret = negative ? -value : value;
	return 0;
}

int
query_int(const char *text, int64_t *ret)
{
	bool     negative = *text == '-';
	uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX, n = 0;
	bool     over = false;

	*ret = 0;
	if (*text == '-' || *text == '+')
		text++;
	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		over = over || __builtin_mul_overflow(n, 10, &n) ||
			__builtin_add_overflow(n, (uint64_t)(*text - '0'), &n) || n > limit;
	}
	if (over)
		n = limit;
	*ret = negative ? (int64_t)(0 - n) : (int64_t)n;
	return over ? -ERANGE : 0;
}
