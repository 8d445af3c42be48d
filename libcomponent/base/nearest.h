/*
 * nearest.h - what somebody may have meant by a word that is none of those there are.
 *
 *     nearest_begin(&n, "profle");
 *     nearest_try(&n, "heap", 4); nearest_try(&n, "profile", 7);      n.word is "profile"
 *
 *   threads  one at a time
 *   source   libcomponent/base/nearest.c
 */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

#define NEAREST_BYTES 65 /* with NUL; what is longer is near nothing */

struct nearest {
	const char *text; /* what was written */
	unsigned    best; /* steps that the next candidate must be below */
	char        word[NEAREST_BYTES]; /* the nearest until now; "": none is near */
};

/* text must stay. */
void nearest_begin(struct nearest *n, const char *text);
/* Of several that are as near the first counts. */
void nearest_try(struct nearest *n, const char *word, size_t size);

/* Steps from one word to another: insert, drop, change or swap a character.  64 for words longer than that. */
unsigned nearest_distance(const char *a, const char *b);

#endif
