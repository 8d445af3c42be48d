/*
 * match.c - regular expressions that mean the same here and in go tool pprof.
 *
 * Not encode's pattern.c, which is for a daemon, and knows no brackets: drop_frames of real files are full of them.
 *
 * Tests: tests/componentctl/profile.t
 */
#include <config.h>

#include "match.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
is_repetition(char c)
{
	return c == '*' || c == '+' || c == '?';
}

/* Where the bracket expression at p ends: at its ']', or at the NUL. */
#define NESTED_MAX 4 /* each doubles the memory of what is in it */

static const char *
bracket_end(const char *p)
{
	p += p[1] == '^' ? 2 : 1;
	p += *p == ']';
	while (*p && *p != ']') {
		const char *end = *p == '[' && p[1] && strchr(":.=", p[1]) ? strstr(p + 2, (char[]){ p[1], ']', '\0' }) : NULL;

		p = end ? end + 2 : p + 1; /* past [:alpha:] */
	}
	return p;
}

/* A '\\' of a set that does not stand for itself in Go: there it is written twice, which is the same to POSIX. */
static bool
has_escape(const char *set, const char *end)
{
	for (const char *p = set; p < end; p++)
		if (*p == '\\' && *++p != '\\')
			return true;
	return false;
}

static int
check(const char *pattern, char *why, size_t size)
{
	bool          repeatable = false; /* what is before */
	unsigned char nested[MATCH_BYTES] = { 0 }, before = 0; /* '+' in '+': most so far in each open group, and in what is before */
	size_t        groups = 0;

	if (strlen(pattern) >= MATCH_BYTES - sizeof("^()$")) {
		snprintf(why, size, "is longer than %zu bytes", MATCH_BYTES - sizeof("^()$") - 1);
		return -EINVAL;
	}
	for (const char *p = pattern; *p; p++) {
		bool repeats = is_repetition(*p), begins = strchr("(|^", *p);
		char group = *p == '(' || *p == ')' ? *p : '\0'; /* not the character that "\\(" stands for, nor one of a set */

		if (*p == '[') {
			const char *set = p;

			p = bracket_end(p);
			if (!*p)
				break; /* regcomp() says it */
			if (has_escape(set, p)) {
				snprintf(why, size, "has a '\\' between brackets; write ']' first there, '-' last, \\\\ for a '\\', and A-Za-z0-9_ for \\w");
				return -EINVAL;
			}
		} else if (*p == '\\' && p[1] && strchr("<>`'", p[1])) {
			snprintf(why, size, "has a '\\' before '%c'; write %c for the character", p[1], p[1]);
			return -EINVAL;
		} else if (*p == '\\' && (!p[1] || isalnum((unsigned char)p[1]))) {
			snprintf(why, size, "has a '\\' that is not before punctuation; write [0-9] for \\d, [A-Za-z0-9_] for \\w");
			return -EINVAL;
		} else if (*p == '\\') {
			p++;
		} else if (*p == '{' || (repeats && !repeatable)) {
			snprintf(why, size, "has a '%c' that is not understood there; write \\%c for the character", *p, *p);
			return -EINVAL;
		}
		if (group == '(')
			nested[++groups] = 0;
		before = group == ')' ? nested[groups] : repeats ? before + (*p == '+') : 0;
		groups -= group == ')' && groups > 0;
		if (before > nested[groups])
			nested[groups] = before;
		if (before > NESTED_MAX) {
			snprintf(why, size, "repeats what is repeated more than %d times over; leave a '+' out", NESTED_MAX);
			return -EINVAL;
		}
		repeatable = !repeats && !begins;
	}
	return 0;
}

static int
compile(struct match *m, const char *pattern, char *why, size_t size)
{
	int r = regcomp(&m->regex, pattern, REG_EXTENDED | REG_NOSUB);

	if (!r) {
		m->usable = true;
		return 0;
	}
	regerror(r, &m->regex, why, size);
	return -EINVAL;
}

int
match_compile(struct match *m, const char *pattern, char *why, size_t size)
{
	return check(pattern, why, size) < 0 ? -EINVAL : compile(m, pattern, why, size);
}

int
match_whole(struct match *m, const char *pattern, char *why, size_t size)
{
	char whole[MATCH_BYTES];

	if (check(pattern, why, size) < 0)
		return -EINVAL;
	snprintf(whole, sizeof(whole), "^(%s)$", pattern);
	return compile(m, whole, why, size);
}

bool
match_finds(const struct match *m, const char *text)
{
	return !regexec(&m->regex, text, 0, NULL, 0);
}

void
match_release(struct match *m)
{
	if (m->usable)
		regfree(&m->regex);
	m->usable = false;
}
