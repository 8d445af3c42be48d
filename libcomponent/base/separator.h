/*
 * separator.h - lists in sentences: "a, b or c".
 *
 *   source   libcomponent/base/separator.h
 */
#ifndef BASE_SEPARATOR_H
#define BASE_SEPARATOR_H

#include <stddef.h>

/* What stands before item i of n; last: " or ", " and ". */
static inline const char *
separator(size_t i, size_t n, const char *last)
{
	return i == 0 ? "" : i + 1 < n ? ", " : last;
}

#endif
