/*
 * strings.c - every text once, numbered from 0 in order of appearance.
 *
 * The table maps a hash of 64 bits to a chain of entries, which are compared: a
 * hash that somebody has forged costs time, not truth.
 *
 * Tests: tests/test_encode.c
 */
#include <config.h>

#include "strings.h"

#include <errno.h>
#include <string.h>

struct entry {
	struct entry *next;
	const char   *text;
	size_t        size;
	uint64_t      id;
};

void
strings_init(struct strings *s, struct arena *a)
{
	*s = (struct strings){ .arena = a };
	table_init(&s->map, a->budget);
}

static uint64_t
hash(const char *text, size_t size)
{
	uint64_t h = size;

	for (uint64_t w; size; text += sizeof(w)) {
		size_t n = size < sizeof(w) ? size : sizeof(w);

		w = 0;
		memcpy(&w, text, n);
		h = (h ^ w) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
		size -= n;
	}
	return h;
}

int
strings_id(struct strings *s, const char *text, size_t size, bool keep,
	uint64_t *ret_id, bool *ret_new)
{
	uint64_t      h = hash(text, size);
	struct entry *head = (struct entry *)(uintptr_t)table_get(&s->map, h), *e;

	for (e = head; e; e = e->next)
		if (e->size == size && !memcmp(e->text, text, size)) {
			*ret_id = e->id;
			*ret_new = false;
			return 0;
		}
	e = arena_alloc(s->arena, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->text = keep ? text : arena_strndup(s->arena, text, size);
	if (!e->text || (!head && table_put(&s->map, h, (uintptr_t)e) < 0))
		return -ENOMEM;
	if (head) {
		e->next = head->next;
		head->next = e;
	}
	e->size = size;
	e->id = s->count++;
	*ret_id = e->id;
	*ret_new = true;
	return 0;
}

void
strings_release(struct strings *s)
{
	table_release(&s->map);
}
