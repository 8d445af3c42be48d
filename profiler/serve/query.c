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
query_next(const char **query, struct query_pair *ret)
{
	const char *pair, *equals;
	size_t      n, name_size;

	while (*query && **query) {
		pair = *query;
		n = strcspn(pair, "&");
		*query += n + (pair[n] == '&');
		if (n == 0)
			continue;
		equals = memchr(pair, '=', n);
		name_size = equals ? (size_t)(equals - pair) : n;
		ret->value = equals ? equals + 1 : pair + n;
		ret->size = equals ? n - name_size - 1 : 0;
		ret->readable = !memchr(pair, ';', n) &&
			ask_decode(pair, name_size, ' ', ret->name, sizeof(ret->name)) >= 0;
		return true;
	}
	return false;
}

bool
query_value(const struct query_pair *pair, char *buf, size_t size)
{
	int64_t n = pair->readable ? ask_decode(pair->value, pair->size, ' ', buf, size) : -1;

	return n >= 0 && strlen(buf) == (size_t)n;
}

bool
query_get(const char *query, const char *name, char *buf, size_t size)
{
	struct query_pair pair;

	while (query_next(&query, &pair))
		if (pair.readable && !strcmp(pair.name, name) && query_value(&pair, buf, size))
			return true;
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
