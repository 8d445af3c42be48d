/*
 * comments.c - what is said of a profile, a line each: its own comments, and what its names and lines lack.
 *
 * Tests: tests/encode/test_pprof.c, tests/encode/test_profile_json.c
 */
#include <config.h>

#include "comments.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "generations.h"
#include "maps.h"

int
comments_split(const char *text, size_t max, comment_fn *fn, void *arg)
{
	const char *end = text + strnlen(text, max);
	int         r = 0;

	for (const char *newline; text < end && !r; text = newline + 1) {
		newline = memchr(text, '\n', (size_t)(end - text));
		if (!newline)
			newline = end;
		if (newline > text)
			r = fn(arg, text, (size_t)(newline - text));
	}
	return r;
}

__attribute__((format(printf, 3, 4))) static int
say(comment_fn *fn, void *arg, const char *format, ...)
{
	char    text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return fn(arg, text, strlen(text));
}

int
comments_of(const struct profile *p, const struct symbols *s, comment_fn *fn, void *arg)
{
	int r = comments_split(p->comments, PROFILE_COMMENTS_MAX, fn, arg);

	if (!r && !symbols_mapping_count(s))
		r = say(fn, arg, "there are no names: neither /proc/self/maps nor the loader's list could be read");
	if (!r && symbols_mapping_count(s) && maps_without_proc())
		r = say(fn, arg, "there is no /proc: objects are known by the loader's list, code made at run time is not");
	if (!r && symbols_unread(s))
		r = say(fn, arg, "%u objects are without names that they do not export: their files were replaced or removed, "
			"cannot be opened, are broken, or need more memory than allowed", symbols_unread(s));
	if (!r && generations_forgotten())
		r = say(fn, arg, "%u objects are not remembered, of which too many have come and gone: what ran in them is "
			"without names", generations_forgotten());
	if (!r && symbols_unlined(s))
		r = say(fn, arg, "%u objects are without some or all lines: their debug information is broken or needs more "
			"memory than allowed", symbols_unlined(s));
	return r;
}
