/*
 * texts.c - strings kept once each, for as long as a request lives.
 *
 * Debug information names a file or a function over and over, from buffers that go
 * away; encoders compare pointers.  So each text is copied once, by its hash.  What a
 * stranger would get wrong: what is compared is the text as it came, and what is given
 * out is the clean one, which differs where a byte was no text.
 *
 * Tests: tests/lines.t, tests/test_symbols_dwarf.c
 */
#include <config.h>

#include "texts.h"

#include <stdint.h>
#include <string.h>

#include "utf8.h"

struct text {
	struct text *next; /* of the same hash */
	const char  *clean;
	size_t       size;
	char         raw[];
};

void
texts_init(struct texts *t, struct arena *a)
{
	t->arena = a;
	table_init(&t->map, a->budget);
}

static uint64_t
hash(const char *s, size_t size)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

	for (size_t i = 0; i < size; i++)
		h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
	return h;
}

const char *
texts_keep(struct texts *t, const char *s, size_t size)
{
	uint64_t     key = hash(s, size);
	struct text *head = (struct text *)(uintptr_t)table_get(&t->map, key), *x;

	for (x = head; x; x = x->next)
		if (x->size == size && !memcmp(x->raw, s, size))
			return x->clean;
	x = arena_alloc(t->arena, sizeof(*x) + size + 1);
	if (!x)
		return NULL;
	memcpy(x->raw, s, size);
	x->size = size;
	x->clean = utf8_is_clean(s, size) ? x->raw : utf8_clean(t->arena, s, size);
	if (!x->clean)
		return NULL;
	/* Two texts of one hash: somebody made them so.  The second is kept behind. */
	if (head) {
		x->next = head->next;
		head->next = x;
	} else if (table_put(&t->map, key, (uintptr_t)x) < 0) {
		return NULL;
	}
	return x->clean;
}

void
texts_release(struct texts *t)
{
	table_release(&t->map);
}
