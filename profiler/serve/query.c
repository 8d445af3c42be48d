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

#include "answer.h"

#define NUMBER_MAX 1e300 /* what is further from 0 is told as that */

bool
query_get(const char *query, const char *name, char *buf, size_t size)
{
	char key[64];

	while (query && *query) {
		size_t      n = strcspn(query, "&");
		const char *equals = memchr(query, '=', n);
		size_t      key_size = equals ? (size_t)(equals - query) : n;

		if (n > 0 && !memchr(query, ';', n) &&
		    ask_decode(query, key_size, ' ', key, sizeof(key)) >= 0 && !strcmp(key, name) &&
		    ask_decode(equals ? equals + 1 : query + n, equals ? n - key_size - 1 : 0, ' ',
			    buf, size) >= 0)
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
