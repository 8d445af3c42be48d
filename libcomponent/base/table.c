/*
 * table.c - a hash table from a number to a number, for one thread at a time.
 *
 * Keys are addresses, ids and hashes; whoever needs a check of more than 64 bits
 * keeps it behind the value.  There is no removal: a table lives for one request.
 *
 * Tests: tests/test_symbols.c
 */
#include <config.h>

#include "table.h"

#include <errno.h>

#define SIZE_FIRST 1024 /* slots; 16 KiB */

void
table_init(struct table *m, struct arena_budget *budget)
{
	*m = (struct table){ .budget = budget };
}

static size_t
slot_of(const struct table *m, uint64_t key)
{
	uint64_t h = key * 0x9e3779b97f4a7c15u;
	size_t   i = (h ^ (h >> 32)) & (m->size - 1);

	while (m->slots[i].value && m->slots[i].key != key)
		i = (i + 1) & (m->size - 1);
	return i;
}

uint64_t
table_get(const struct table *m, uint64_t key)
{
	return m->size ? m->slots[slot_of(m, key)].value : 0;
}

static int
grow(struct table *m)
{
	struct table bigger = *m;

	bigger.size = m->size ? m->size * 2 : SIZE_FIRST;
	bigger.slots = arena_map(m->budget, bigger.size * sizeof(*m->slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->size; i++)
		if (m->slots[i].value)
			bigger.slots[slot_of(&bigger, m->slots[i].key)] = m->slots[i];
	arena_unmap(m->budget, m->slots, m->size * sizeof(*m->slots));
	*m = bigger;
	return 0;
}

int
table_put(struct table *m, uint64_t key, uint64_t value)
{
	/* Half full: most keys are where they are looked for first, which a profile with many
	 * addresses does three million times. */
	if (m->count >= m->size / 2) {
		int r = grow(m);

		if (r < 0)
			return r;
	}
	m->slots[slot_of(m, key)] = (struct table_slot){ key, value };
	m->count++;
	return 0;
}

void
table_release(struct table *m)
{
	arena_unmap(m->budget, m->slots, m->size * sizeof(*m->slots));
	table_init(m, m->budget);
}
