/*
 * digits.h - a number that is written in digits and nothing else, as variables of the
 * environment have it.
 */
#ifndef BASE_DIGITS_H
#define BASE_DIGITS_H

#include <stdint.h>

/* -1: it is none, or more than max, which is at most INT64_MAX / 2.  NULL is none. */
static inline int64_t
digits_number(const char *text, int64_t max)
{
	int64_t value = 0;

	if (!text || !*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || value > max / 10)
			return -1;
		value = 10 * value + (*text - '0');
	}
	return value > max ? -1 : value;
}

#endif
