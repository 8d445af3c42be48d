/*
 * comments.h - what is said of a profile, a line each: its own comments, and what its names and lines lack.
 */
#ifndef ENCODE_COMMENTS_H
#define ENCODE_COMMENTS_H

#include <stddef.h>

#include "profile.h"
#include "symbols.h"

/* Not terminated, never empty; it may be gone afterwards.  0, or a negative errno which ends it and is returned. */
typedef int comment_fn(void *arg, const char *text, size_t size);

/* The lines of a text of at most max bytes. */
int comments_split(const char *text, size_t max, comment_fn *fn, void *arg);
/* After the last address was asked for: what could not be read is not known before. */
int comments_of(const struct profile *p, const struct symbols *s, comment_fn *fn, void *arg);

#endif
