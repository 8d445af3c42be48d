/*
 * utf8.h - strings from files, made safe to print.
 */
#ifndef SYMBOLS_UTF8_H
#define SYMBOLS_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#include "arena.h"

/* Valid UTF-8 without control characters. */
bool  utf8_is_clean(const char *s, size_t size);
/* A copy in which each byte that is not so is a '?'; NULL without memory. */
char *utf8_clean(struct arena *a, const char *s, size_t size);

#endif
