/*
 * generations_parts.h - what the four files of generations share.
 */
#ifndef MODEL_GENERATIONS_PARTS_H
#define MODEL_GENERATIONS_PARTS_H

#include <stdatomic.h>

#include "generations.h"
#include "maps.h"
#include "memory.h"

/* What hooks need of an object; those that are loaded come first, by address. */
struct generations_range {
	uintptr_t start, limit, mark;
	uint32_t  mark_is;
	uint16_t  tag;
	bool      stays; /* is never unloaded */
	bool      fixed; /* the same, or it has no mark to look at */
};

struct generations_published {
	size_t   map_bytes, room;
	size_t   loaded, count;
	uint16_t next_tag;  /* of an object that nobody has seen yet, in a place used before */
	atomic_bool suspected; /* next_tag has been given */
	struct generations_range ranges[];
};

/* generations_tag.c; the last two under the stack table's lock. */
enum mark { MARK_SAME, MARK_OTHER, MARK_UNMAPPED };
enum mark mark_look(uintptr_t at, uint32_t is);
/* The old one.  *ret_suspected is what the old one has become. */
struct generations_published *generations_publish(struct generations_published *p);
const struct generations_published *generations_now(void);

/* Code that has no record, as much as joins. */
struct generations_other {
	uintptr_t start, limit;
};

/* generations_ranges.c: shows hooks the records and the code that has none.  0 or a
 * negative errno. */
int  generations_ranges_show(const struct generation *all, size_t count, const struct generations_other *others,
			     size_t other_count, uint16_t next_tag);
/* Room for so many, so that the next one to be shown need not be mapped. */
void generations_ranges_reserve(size_t count);
void generations_ranges_release(void);

/* generations_id.c: build id and mark of the object whose first bytes are mapped at
 * `header`, which is read through mem.  False: it is no ELF object. */
bool generations_identify(const struct memory *mem, uintptr_t header, size_t header_size, struct generation *g);
/* What is loaded of them, for the time when there is no /proc (maps.h). */
void generations_keep(const struct generation *all, size_t count);

#endif
