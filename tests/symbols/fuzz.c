/*
 * fuzz.c - libFuzzer's door to all that reads a stranger's ELF file: symbols,
 * packed symbols, stubs, sections, lines and inlined functions.
 *
 *     scripts/fuzz [SECONDS]      builds it with clang and runs it
 *
 * What is found: accesses out of bounds (the arena marks what lies between its pieces),
 * memory over the limit or not given back, and files that take too long.
 */
#include <config.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "debugdata.h"
#include "dwarf_feed.h"
#include "object.h"

#define LIMIT ((size_t)16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
feed_symbols(const uint8_t *data, size_t size)
{
	struct arena_budget budget = { 0, LIMIT };
	struct arena        arena;
	struct object      *o = calloc(1, sizeof(*o));

	arena_init(&arena, &budget);
	if (o && !image_open_data(&o->image, data, size)) {
		o->path = ""; /* it has no name, so no file beside it is looked for */
		image_build_id(&o->image, o->build_id);
		object_read_table(o, &arena);
		object_read_ranges(o, &arena);
		for (size_t i = 0; i < o->table.count; i++)
			symtab_name(&o->table, i, &arena);
		if (o->table.source_count > 0 && size > sizeof(uint64_t)) {
			uint64_t at, offset;

			memcpy(&at, data + size - sizeof(at), sizeof(at));
			symtab_data(&o->table, at, &arena, &offset);
		}
		object_release(o);
	}
	arena_release(&arena);
	if (budget.used)
		abort();
	free(o);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f;

	debugdata_prepare();
	f = feed_file(data, size, LIMIT);

	if (f.lost || f.peak > LIMIT)
		abort();
	feed_symbols(data, size);
	return 0;
}
