/*
 * strings.c - every text once, numbered from 0 in order of appearance.
 *
 * Texts of one hash are compared: a hash that somebody has forged costs time, not truth.
 *
 * Debug information names a file or a function over and over, from buffers that go away; encoders
 * compare pointers.  What a stranger would get wrong: what is compared is the text as it came, and what
 * strings_clean() gives out differs where a byte was no text.
 *
 * Tests: tests/encode/test_pprof.c, tests/symbols/lines.t, tests/symbols/test_dwarf.c
 */
#include <config.h>

#include "strings.h"

#include <errno.h>
#include <string.h>

#include "utf8.h"

struct string {
	const char *text, *clean; /* clean: NULL until somebody asks */
	size_t      size;
	uint64_t    id;
};

void
strings_init(struct strings *s, struct arena *a)
{
	*s = (struct strings){ .arena = a };
	table_init(&s->map, a->budget);
}

static bool
is_same(const void *what, uint64_t value)
{
	const struct string *want = what, *have = (const struct string *)(uintptr_t)value;

	return have->size == want->size && !memcmp(have->text, want->text, want->size);
}

/* NULL without memory. */
static struct string *
find(struct strings *s, const char *text, size_t size, bool keep)
{
	const struct string want = { .text = text, .size = size };
	uint64_t            h = table_hash(table_seed(), text, size);
	struct string      *x = (struct string *)(uintptr_t)table_find(&s->map, h, is_same, &want);

	if (x)
		return x;
	x = arena_alloc(s->arena, sizeof(*x));
	if (!x)
		return NULL;
	*x = (struct string){ keep ? text : arena_strndup(s->arena, text, size), NULL, size, s->count };
	if (!x->text || table_put(&s->map, h, (uintptr_t)x) < 0)
		return NULL;
	s->count++;
	return x;
}

int
strings_id(struct strings *s, const char *text, size_t size, bool keep,
	uint64_t *ret_id, bool *ret_new)
{
	uint64_t       count = s->count;
	struct string *x = find(s, text, size, keep);

	if (!x)
		return -ENOMEM;
	*ret_id = x->id;
	*ret_new = s->count > count;
	return 0;
}

const char *
strings_clean(struct strings *s, const char *text, size_t size)
{
	struct string *x = find(s, text, size, false);

	if (x && !x->clean)
		x->clean = utf8_is_clean(text, size) ? x->text : utf8_clean(s->arena, text, size);
	return x ? x->clean : NULL;
}

void
strings_release(struct strings *s)
{
	table_release(&s->map);
}
