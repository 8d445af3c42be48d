/*
 * strings.h - every text once, numbered from 0 in order of appearance.
 */
#ifndef ENCODE_STRINGS_H
#define ENCODE_STRINGS_H

#include <stdbool.h>

#include "arena.h"
#include "table.h"

struct strings {
	struct arena *arena;
	struct table  map;
	uint64_t      count;
};

void strings_init(struct strings *s, struct arena *a);
/* keep: the text outlives the table, so no copy is made.  *ret_id == count - 1 and
 * *ret_new if it was not there.  0 or -ENOMEM. */
int  strings_id(struct strings *s, const char *text, size_t size, bool keep,
	uint64_t *ret_id, bool *ret_new);
void strings_release(struct strings *s);

#endif
