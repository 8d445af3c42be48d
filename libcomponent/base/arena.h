/*
 * arena.h - memory for one request, from mmap, under a cap, given back at once.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

/* Bytes mapped by all arenas and maps that share it.  One thread at a time. */
struct arena_budget {
	size_t used, limit;
};

struct arena_chunk;

struct arena {
	struct arena_budget *budget;
	struct arena_chunk  *chunks; /* the newest first; only it has room */
};

void  arena_init(struct arena *a, struct arena_budget *budget);
/* Zeroed, aligned for any type; NULL when the budget or the system says no. */
void *arena_alloc(struct arena *a, size_t size);
/* NULL on overflow, too. */
void *arena_array(struct arena *a, size_t count, size_t size);
/* Room for one member more: old itself, or, where its count members fill the *room, a copy with twice that.
 * NULL: no memory. The old one stays until the arena goes. */
void *arena_grown(struct arena *a, void *old, size_t *room, size_t count, size_t size);
/* arena_array() for libraries that take an allocator: liblzma's alloc and zlib's zalloc, with the arena as
 * their opaque pointer.  What they free stays until the arena goes. */
void *arena_calloc(void *arena, size_t count, size_t size);
void *arena_zalloc(void *arena, unsigned count, unsigned size);
void  arena_keep(void *arena, void *p);
/* Copies size bytes and adds a NUL. */
char *arena_strndup(struct arena *a, const char *s, size_t size);
/* All of it at once; the arena may be used again. */
void  arena_release(struct arena *a);

/* A mapping of its own, for tables that grow; whole pages, zeroed.  budget NULL: none. */
void *arena_map(struct arena_budget *budget, size_t size);
void  arena_unmap(struct arena_budget *budget, void *p, size_t size);

#endif
