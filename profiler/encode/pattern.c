/*
 * pattern.c - which names are meant: the part of Go's regular expressions that costs linear time.
 *
 *     alternative | alternative        each: ^ piece .* piece .* piece $
 *
 * A piece is characters and dots, which have no choice, so each is looked for from the left behind the one
 * before it and nothing is tried twice: between two pieces any text is fine, so the first place is as good as
 * any later one.  Only the last one, where it must end with the text, is looked for there.
 *
 * Not regcomp(): it follows the daemon's locale, takes the daemon's malloc, and a pattern of few bytes costs it
 * gigabytes or minutes.
 *
 * Tests: tests/encode/test_view.c, tests/serve/view.t.
 */
#include <config.h>

#include "pattern.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool
is_punctuation(char c)
{
	return c > ' ' && c < 0x7f && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z');
}

static bool
is_any_text(const char *p)
{
	return p[0] == '.' && p[1] == '*';
}

int
pattern_check(const char *pattern, char *why, size_t size)
{
	bool begins = true; /* an alternative, here */

	if (strlen(pattern) >= PATTERN_BYTES) {
		snprintf(why, size, "is longer than %d bytes", PATTERN_BYTES - 1);
		return -EINVAL;
	}
	for (const char *p = pattern; *p; p++) {
		bool first = begins;

		begins = *p == '|';
		if (*p == '\\') {
			if (!is_punctuation(*++p)) {
				snprintf(why, size, "has a '\\' that is not before punctuation");
				return -EINVAL;
			}
		} else if (is_any_text(p)) {
			p++;
		} else if (strchr("[()*+?{", *p) || (*p == '^' && !first) || (*p == '$' && p[1] && p[1] != '|')) {
			snprintf(why, size, "has a '%c' there; understood are . .* ^ $ | and \\%c for the character", *p, *p);
			return -EINVAL;
		}
	}
	return 0;
}

/* Bytes of the character there. */
static size_t
character(const char *text)
{
	size_t n = 1;

	while (((unsigned char)text[n] & 0xc0) == 0x80)
		n++;
	return n;
}

/* Where the text behind the piece p to end goes on, if the piece is here; else NULL. */
static const char *
piece_here(const char *p, const char *end, const char *text)
{
	for (; p < end; p++) {
		if (!*text)
			return NULL;
		if (*p == '.') {
			text += character(text);
			continue;
		}
		p += *p == '\\';
		if (*p != *text++)
			return NULL;
	}
	return text;
}

/* Likewise for the first place at or behind text, or for one where the text ends behind it. */
static const char *
piece_find(const char *p, const char *end, const char *text, bool at_end)
{
	const char *behind;

	for (;; text += character(text)) {
		behind = piece_here(p, end, text);
		if (behind && (!at_end || !*behind))
			return behind;
		if (!*text)
			return NULL;
	}
}

static const char *
piece_end(const char *p, const char *end)
{
	while (p < end && !is_any_text(p))
		p += 1 + (*p == '\\');
	return p;
}

static bool
alternative_finds(const char *p, const char *end, bool at_end, const char *text)
{
	bool        here = *p == '^';
	const char *piece;

	p += here;
	for (;; p = piece + 2) {
		bool last;

		piece = piece_end(p, end);
		last = piece == end;
		if (here) {
			text = piece_here(p, piece, text);
			if (text && last && at_end && *text)
				return false;
		} else {
			text = piece_find(p, piece, text, last && at_end);
		}
		here = false;
		if (!text || last)
			return text;
	}
}

bool
pattern_finds(const char *pattern, const char *text)
{
	for (const char *p = pattern, *end;; p = end + 1) {
		bool at_end = false;

		for (end = p; *end && *end != '|'; end += 1 + (*end == '\\'))
			at_end = *end == '$';
		if (alternative_finds(p, end - at_end, at_end, text))
			return true;
		if (!*end)
			return false;
	}
}
