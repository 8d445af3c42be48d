/*
 * pattern.h - which names are meant: the part of Go's regular expressions that costs linear time.
 *
 * Characters stand for themselves, `.` for any one, `.*` for any text, `\` before punctuation for that
 * character; `|` parts alternatives, which `^` begins at the beginning and `$` ends at the end.  It may lie
 * anywhere in a name.  What else has a meaning in Go's, `[ ( ) * + ? {`, is refused, so that what is taken
 * means the same in go tool pprof.
 *
 *   limits   PATTERN_BYTES; a look at a name costs at most the product of their lengths
 *   threads  any
 *   source   profiler/encode/pattern.c
 */
#ifndef ENCODE_PATTERN_H
#define ENCODE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#define PATTERN_BYTES 256 /* with NUL */

/* 0, or -EINVAL and why not, without its subject: "is longer than 255 bytes". */
int  pattern_check(const char *pattern, char *why, size_t size);
/* Does a pattern that was checked find itself in the text? */
bool pattern_finds(const char *pattern, const char *text);

#endif
