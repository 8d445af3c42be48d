/*
 * strings.h - every text once, numbered from 0 in order of appearance.
 */
#ifndef SYMBOLS_STRINGS_H
#define SYMBOLS_STRINGS_H

#include <stdbool.h>

#include "arena.h"
#include "table.h"

struct strings {
	struct arena *arena;
	struct table  map; /* hash to struct string */
	uint64_t      count;
};

void strings_init(struct strings *s, struct arena *a);
/* keep: the text outlives the table, so no copy is made.  *ret_id == count - 1 and
 * *ret_new if it was not there.  0 or -ENOMEM. */
int  strings_id(struct strings *s, const char *text, size_t size, bool keep,
	uint64_t *ret_id, bool *ret_new);
/* The same pointer for the same bytes, safe to print, for as long as the arena.  NULL without
 * memory. */
const char *strings_clean(struct strings *s, const char *text, size_t size);
void strings_release(struct strings *s);

#endif
