/*
 * texts.h - strings kept once each, for as long as a request lives.
 */
#ifndef SYMBOLS_TEXTS_H
#define SYMBOLS_TEXTS_H

#include <stddef.h>

#include "arena.h"
#include "table.h"

struct texts {
	struct arena *arena;
	struct table  map; /* hash to struct text */
};

void        texts_init(struct texts *t, struct arena *a);
/* The clean copy of size bytes: the same pointer for the same bytes.  NULL without
 * memory. */
const char *texts_keep(struct texts *t, const char *s, size_t size);
void        texts_release(struct texts *t);

#endif
