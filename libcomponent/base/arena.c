/*
 * arena.c - bump allocation out of mmap'ed chunks.
 *
 * Writing a profile happens inside a daemon whose malloc may be the very thing
 * that is looked at, or whose limits are tight: what we need comes from mmap, is
 * counted against a budget before it is taken, and goes back in one sweep.
 * Chunks double in size up to a maximum, so that a big request does not use up
 * the process's number of mappings (vm.max_map_count).
 *
 * Under AddressSanitizer the space between two pieces is poisoned: a read past
 * the end of a table made from a broken file is found although no malloc is used.
 *
 * Tests: tests/symbols/test_symbols.c
 */
#include <config.h>

#include "arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "pages.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define REDZONE 16
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define REDZONE 0
#endif

#define CHUNK_MIN ((size_t)64 << 10) /* bytes; most requests need one or two */
#define CHUNK_MAX ((size_t)1 << 20)  /* bytes; larger pieces get their own chunk */
#define GROWN_MIN 1024               /* members of a table that grows */
#define PAGE      ((size_t)4096)     /* rounding only; mmap knows the real size */
#define ALIGN     alignof(max_align_t)

struct arena_chunk {
	struct arena_chunk *next;
	size_t              size, used;
};

#define HEADER ((sizeof(struct arena_chunk) + ALIGN - 1) & ~(ALIGN - 1))

void
arena_init(struct arena *a, struct arena_budget *budget)
{
	a->budget = budget;
	a->chunks = NULL;
}

void *
arena_map(struct arena_budget *budget, size_t size)
{
	void *p;

	if (!size || (budget && (size > budget->limit || budget->used > budget->limit - size)))
		return NULL;
	p = pages_map(size);
	if (p && budget)
		budget->used += size;
	return p;
}

void
arena_unmap(struct arena_budget *budget, void *p, size_t size)
{
	if (!p)
		return;
	ASAN_UNPOISON_MEMORY_REGION(p, size);
	pages_unmap(p, size);
	if (budget)
		budget->used -= size;
}

static struct arena_chunk *
chunk_add(struct arena *a, size_t need)
{
	struct arena_chunk *c;
	size_t              size = CHUNK_MIN;

	if (a->chunks && a->chunks->size >= CHUNK_MIN)
		size = a->chunks->size * 2 < CHUNK_MAX ? a->chunks->size * 2 : CHUNK_MAX;
	if (need > SIZE_MAX - HEADER - PAGE)
		return NULL;
	if (need + HEADER > size)
		size = (need + HEADER + PAGE - 1) & ~(PAGE - 1);
	c = arena_map(a->budget, size);
	if (!c)
		return NULL;
	c->size = size;
	c->used = HEADER;
	ASAN_POISON_MEMORY_REGION((char *)c + HEADER, size - HEADER);
	if (a->chunks && size > CHUNK_MAX) {
		/* A piece of its own: the current chunk keeps its room. */
		c->next = a->chunks->next;
		a->chunks->next = c;
	} else {
		c->next = a->chunks;
		a->chunks = c;
	}
	return c;
}

void *
arena_alloc(struct arena *a, size_t size)
{
	struct arena_chunk *c = a->chunks;
	size_t              need;
	char               *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	need = (size + REDZONE + ALIGN - 1) & ~(ALIGN - 1);
	if (!c || c->size - c->used < need)
		c = chunk_add(a, need);
	if (!c)
		return NULL;
	p = (char *)c + c->used;
	c->used += need;
	ASAN_UNPOISON_MEMORY_REGION(p, size);
	return p;
}

void *
arena_array(struct arena *a, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		return NULL;
	return arena_alloc(a, bytes);
}

void *
arena_grown(struct arena *a, void *old, size_t *room, size_t count, size_t size)
{
	size_t wanted = *room ? *room * 2 : GROWN_MIN;
	void  *p;

	if (count < *room)
		return old;
	p = arena_array(a, wanted, size);
	if (!p)
		return NULL;
	if (old)
		memcpy(p, old, *room * size);
	*room = wanted;
	return p;
}

void *
arena_calloc(void *arena, size_t count, size_t size)
{
	return arena_array(arena, count, size);
}

void *
arena_zalloc(void *arena, unsigned count, unsigned size)
{
	return arena_array(arena, count, size);
}

void
arena_keep(void *arena, void *p)
{
	(void)arena;
	(void)p;
}

char *
arena_strndup(struct arena *a, const char *s, size_t size)
{
	char *p = size < SIZE_MAX ? arena_alloc(a, size + 1) : NULL;

	if (p)
		memcpy(p, s, size);
	return p;
}

void
arena_release(struct arena *a)
{
	struct arena_chunk *c = a->chunks, *next;

	a->chunks = NULL; /* first: a child may be forked in the midst of munmap() */
	for (; c; c = next) {
		next = c->next;
		arena_unmap(a->budget, c, c->size);
	}
}
