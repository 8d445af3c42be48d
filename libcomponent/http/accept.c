/*
 * accept.c - what a client wants, from Accept and Accept-Encoding.
 *
 * What a stranger would get wrong: a quality is a decimal number, and strtod(3) would read it by
 * the program's locale; here its digits are read.
 *
 * Tests: tests/http/test_accept.c.
 */
#include <config.h>

#include "accept.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* "0.25" as thousandths; what is no number is 1. */
static int
quality_of(const char *text, size_t size)
{
	int quality = 0, worth = ACCEPT_QUALITY_MAX;

	if (!size || !isdigit((unsigned char)*text))
		return ACCEPT_QUALITY_MAX;
	for (; size && worth; text++, size--) {
		if (*text == '.')
			continue;
		if (!isdigit((unsigned char)*text))
			break;
		quality += (*text - '0') * worth;
		worth /= 10;
	}
	return quality < ACCEPT_QUALITY_MAX ? quality : ACCEPT_QUALITY_MAX;
}

static size_t
without_blanks(const char **text, size_t size)
{
	while (size && strchr(" \t", **text)) {
		(*text)++;
		size--;
	}
	while (size && strchr(" \t", (*text)[size - 1]))
		size--;
	return size;
}

const char *
accept_parameter(const struct accept_entry *e, const char *name, size_t *ret_size)
{
	const char *at = e->parameters, *end = at + e->parameters_size;
	size_t      n = strlen(name);

	while (at < end) {
		const char *next = memchr(at, ';', (size_t)(end - at)), *word = at;
		size_t      size = without_blanks(&word, (size_t)((next ? next : end) - at));

		if (size > n && !strncasecmp(word, name, n) && word[n] == '=') {
			*ret_size = size - n - 1;
			return word + n + 1;
		}
		at = next ? next + 1 : end;
	}
	return NULL;
}

bool
accept_next(const char **at, struct accept_entry *ret)
{
	const char *q;
	size_t      size, n;

	do {
		if (!*at || !**at)
			return false;
		size = strcspn(*at, ",");
		ret->name = *at;
		*at += size + ((*at)[size] == ',');
		size = without_blanks(&ret->name, size);
	} while (!size);
	n = strcspn(ret->name, ";");
	ret->parameters = n < size ? ret->name + n + 1 : ret->name + size;
	ret->parameters_size = n < size ? size - n - 1 : 0;
	ret->name_size = without_blanks(&ret->name, n < size ? n : size);
	q = accept_parameter(ret, "q", &n);
	ret->quality = q ? quality_of(q, n) : ACCEPT_QUALITY_MAX;
	return true;
}

bool
accept_is(const struct accept_entry *e, const char *name)
{
	return e->name_size == strlen(name) && !strncasecmp(e->name, name, e->name_size);
}

int
accept_quality(const char *header, const char *name)
{
	struct accept_entry e;

	while (accept_next(&header, &e))
		if (accept_is(&e, name))
			return e.quality;
	return 0;
}
