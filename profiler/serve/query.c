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
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 1e300 /* what is further from 0 is told as that */

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
			if (i + 2 >= n || !isxdigit((unsigned char)text[i + 1]) || !isxdigit((unsigned char)text[i + 2]))
				return false;
			c = (char)strtoul((char[]){ text[i + 1], text[i + 2], '\0' }, NULL, 16);
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

/* By the "C" locale, not by the daemon's, which may have another point. */
int
query_float(const char *text, double *ret)
{
	locale_t c;
	double   value;
	char    *end;

	*ret = 0;
	if (!*text || text[strspn(text, "+-.0123456789ABCDEFPXabcdefpx")]) /* "inf", a blank */
		return -EINVAL;
	c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (!c)
		return -ENOMEM;
	value = strtod_l(text, &end, c);
	freelocale(c);
	if (*end)
		return -EINVAL;
	*ret = value > NUMBER_MAX ? NUMBER_MAX : value < -NUMBER_MAX ? -NUMBER_MAX : value;
	return 0;
}

int
query_int(const char *text, int64_t *ret)
{
	long long n;
	char     *end;

	*ret = 0;
	if (!isdigit((unsigned char)text[*text == '-' || *text == '+']))
		return -EINVAL;
	errno = 0;
	n = strtoll(text, &end, 10);
	if (*end)
		return -EINVAL;
	*ret = n;
	return -errno;
}
