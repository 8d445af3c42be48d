/*
 * dwarf_feed.h - one file, in memory, through all that reads debug information; for
 * test_dwarf.c and fuzz.c.
 */
#ifndef TESTS_SYMBOLS_DWARF_FEED_H
#define TESTS_SYMBOLS_DWARF_FEED_H

#include <stdlib.h>
#include <string.h>

#include "dwarf/dwarf.h"

#define FEED_ADDRESSES 512

struct feed {
	size_t lines, frames, inlined, named;
	size_t peak;   /* bytes of the budget that were used, as seen when something was found */
	size_t lost;   /* bytes that were not given back */
	int    status;
	struct arena_budget *budget;
};

static inline int
feed_found(void *arg, size_t id, const struct dwarf_frame *frames, unsigned count)
{
	struct feed *f = arg;

	(void)id;
	f->frames += count;
	f->inlined += count - 1;
	for (unsigned i = 0; i < count; i++) {
		f->lines += frames[i].file && frames[i].line && strlen(frames[i].file) > 0;
		f->named += frames[i].name && strlen(frames[i].name) > 0;
	}
	if (f->budget->used > f->peak)
		f->peak = f->budget->used;
	return 0;
}

/* The file is its own supplementary file, too, so that those forms are followed. */
static inline struct feed
feed_file(const unsigned char *data, size_t size, size_t limit)
{
	struct arena_budget budget = { 0, limit };
	struct feed         f = { .status = -1, .budget = &budget };
	struct image        img;
	struct dwarf_files  files = { &img, &img, &img };
	struct arena        arena;
	struct strings      texts;
	struct dwarf_want  *wants;
	uint64_t            total = 0;

	if (image_open_data(&img, data, size) < 0)
		return f;
	arena_init(&arena, &budget);
	strings_init(&texts, &arena);
	wants = calloc(FEED_ADDRESSES, sizeof(*wants));
	for (unsigned i = 0; i < img.load_count; i++)
		total += img.loads[i].size < 1 << 20 ? img.loads[i].size : 1 << 20;
	for (size_t i = 0; wants && i < FEED_ADDRESSES; i++) {
		uint64_t at = total * i / FEED_ADDRESSES;

		wants[i].id = i;
		wants[i].vaddr = at;
		for (unsigned k = 0; k < img.load_count; k++) {
			uint64_t part = img.loads[k].size < 1 << 20 ? img.loads[k].size : 1 << 20;

			if (at < part) {
				wants[i].vaddr = img.loads[k].vaddr + at;
				break;
			}
			at -= part;
		}
	}
	if (wants)
		f.status = dwarf_lookup(&files, &budget, &texts, wants, FEED_ADDRESSES, feed_found, &f);
	free(wants);
	strings_release(&texts);
	arena_release(&arena);
	f.lost = budget.used;
	f.budget = NULL;
	return f;
}

#endif
