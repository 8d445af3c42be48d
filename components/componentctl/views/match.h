/*
 * match.h - regular expressions that mean the same here and in go tool pprof.
 *
 * POSIX's extended ones, by regcomp(3) in the C locale.  What Go reads otherwise is refused: "(?", a backslash
 * before a letter or a digit, a repetition of a repetition; and "{", of which a few bytes cost regcomp() gigabytes.
 *
 *   limits   MATCH_BYTES of a pattern
 *   threads  any, for one that is compiled
 *   source   components/componentctl/views/match.c
 */
#ifndef COMPONENTCTL_MATCH_H
#define COMPONENTCTL_MATCH_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#define MATCH_BYTES   8192 /* with NUL */
#define MATCH_WHY_MAX 256

struct match {
	bool    usable;
	regex_t regex;
};

#define MATCH_INIT { .usable = false }

/* 0, or -EINVAL and why not, without its subject: "has a '{', ...". */
int  match_compile(struct match *m, const char *pattern, char *why, size_t size);
/* The same, of which a name must be all. */
int  match_whole(struct match *m, const char *pattern, char *why, size_t size);
bool match_finds(const struct match *m, const char *text);
void match_release(struct match *m);

#endif
