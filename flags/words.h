/*
 * words.h - lists of lines, and words of a row's member.
 *
 *   errors   a failed allocation is remembered: add all, then ask once (failed)
 *   threads  one at a time
 *   source   flags/words.c
 */
#ifndef FLAGS_WORDS_H
#define FLAGS_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include <component/export.h>

struct lines {
	char **items;
	size_t count;
	bool   failed;
};

void lines_add(struct lines *l, const char *format, ...) COMPONENT_PRINTF(2, 3);
void lines_release(struct lines *l);

/* The next blank-separated word of a row's member; false at the end. */
bool words_next(const char **cursor, const char **ret_word, size_t *ret_size);

#endif
