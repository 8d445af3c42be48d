/*
 * symbols_state.h - what the two files of symbols.h share: a view and its mappings.
 */
#ifndef SYMBOLS_SYMBOLS_STATE_H
#define SYMBOLS_SYMBOLS_STATE_H

#include "arena.h"
#include "cache.h"
#include "object.h"
#include "resolve.h"
#include "symbols.h"
#include "table.h"
#include "unloaded.h"

struct mapping {
	struct symbol_mapping shown;
	struct object        *object;
	uintptr_t             start; /* where it is or was; shown may be elsewhere (unloaded.c) */
};

struct symbols {
	struct arena_budget budget;
	struct arena        arena;
	struct mapping     *mappings; /* 0 is the main binary, the others are sorted */
	size_t              mapping_count, loaded_count; /* those that are gone come last */
	struct unloaded     unloaded;
	struct object      *objects;
	size_t              object_count;
	struct table        names; /* KEY_... to struct name */
	struct table        files; /* inode and device to 1 + index of the object */
	struct resolver     resolver;
	struct cache       *cache; /* answers of earlier requests */
	bool                lines; /* were asked for */
	unsigned            open_files, unread, unlined;
	struct symbols_datum *data; /* data.c: what was asked for */
	struct demangle_room *demangling; /* in the arena; NULL: no mangled name has been met */
};

/* mappings.c: fills mappings and objects.  0 or -ENOMEM. */
int mappings_read(struct symbols *s);
int mappings_take(struct symbols *s, const struct symbol_mapping *places, size_t count);
/* Where in the mapped file an address of the process is, tagged or not. */
uint64_t mappings_offset(const struct mapping *m, uintptr_t pc);

#endif
