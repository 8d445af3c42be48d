/*
 * table.c - a hash table from a number to a number, for one thread at a time.
 *
 * What a stranger would get wrong:
 * - A slot that is removed is filled by moving later ones up, not by a tombstone: a program that opens
 *   and closes for a year would else have nothing but tombstones.
 * - Keys come from files that somebody may have made so that all of them fall into one slot.  So each
 *   process has a seed, and two multiplications: behind one, keys that differ in their highest bits
 *   alone still share a slot.
 *
 * Why not gnulib's or libc's: theirs are malloc's memory, which may be what is being looked at.
 *
 * Tests: tests/base/test_table.c, tests/symbols/test_symbols.c, tests/custom/test_custom.c
 */
#include <config.h>

#include "table.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

#define SIZE_FIRST 1024 /* slots; 16 KiB */
#define GOLDEN     0x9e3779b97f4a7c15u

void
table_init(struct table *t, struct arena_budget *budget)
{
	*t = (struct table){ .budget = budget };
}

uint64_t
table_seed(void)
{
	const uint8_t *random = (const uint8_t *)getauxval(AT_RANDOM);
	uint64_t       words[2] = { 0 };

	if (random)
		memcpy(words, random, sizeof(words));
	return (words[0] ^ words[1]) * GOLDEN; /* each of them is a secret of the libc's */
}

static inline size_t
slot_first(const struct table *t, uint64_t key)
{
	uint64_t h = (key ^ t->seed) * GOLDEN;

	h = (h ^ (h >> 32)) * GOLDEN;
	return (h ^ (h >> 32)) & (t->size - 1);
}

/* is NULL: any of that key.  There is a free slot. */
static inline size_t
slot_of(const struct table *t, uint64_t key, table_is_fn *is, const void *what)
{
	size_t i = slot_first(t, key);

	while (t->slots[i].value && (t->slots[i].key != key || (is && !is(what, t->slots[i].value))))
		i = (i + 1) & (t->size - 1);
	return i;
}

uint64_t
table_get(const struct table *t, uint64_t key)
{
	return t->size ? t->slots[slot_of(t, key, NULL, NULL)].value : 0;
}

uint64_t
table_find(const struct table *t, uint64_t key, table_is_fn *is, const void *what)
{
	return t->size ? t->slots[slot_of(t, key, is, what)].value : 0;
}

static void
put(struct table *t, uint64_t key, uint64_t value)
{
	size_t i = slot_first(t, key);

	while (t->slots[i].value)
		i = (i + 1) & (t->size - 1);
	t->slots[i] = (struct table_slot){ key, value };
}

static int
grow(struct table *t)
{
	struct table bigger = *t;

	if (!t->size)
		bigger.seed = table_seed();
	bigger.size = t->size ? t->size * 2 : SIZE_FIRST;
	bigger.slots = arena_map(t->budget, bigger.size * sizeof(*t->slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < t->size; i++)
		if (t->slots[i].value)
			put(&bigger, t->slots[i].key, t->slots[i].value);
	arena_unmap(t->budget, t->slots, t->size * sizeof(*t->slots));
	*t = bigger;
	return 0;
}

int
table_put(struct table *t, uint64_t key, uint64_t value)
{
	/* Half full: most keys are where they are looked for first, which a profile with many
	 * addresses does three million times.  At seven eighths one that is not there costs 32 slots. */
	if (t->count >= t->size / 2 && grow(t) < 0 && t->count >= t->size - t->size / 8)
		return -ENOMEM;
	put(t, key, value);
	t->count++;
	return 0;
}

uint64_t
table_remove(struct table *t, uint64_t key)
{
	size_t   i = t->size ? slot_of(t, key, NULL, NULL) : 0, mask = t->size - 1;
	uint64_t value = t->size ? t->slots[i].value : 0;

	if (!value)
		return 0;
	for (size_t k = (i + 1) & mask; t->slots[k].value; k = (k + 1) & mask) {
		if (((k - slot_first(t, t->slots[k].key)) & mask) < ((k - i) & mask))
			continue;
		t->slots[i] = t->slots[k];
		i = k;
	}
	t->slots[i].value = 0;
	t->count--;
	return value;
}

/* All of the product: of its lower half alone the highest bit would depend on one bit. */
static inline uint64_t
fold(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t
table_hash(uint64_t seed, const void *data, size_t size)
{
	const char *p = data;
	uint64_t    h = seed ^ size;

	for (uint64_t w; size; p += sizeof(w)) {
		size_t n = size < sizeof(w) ? size : sizeof(w);

		w = 0;
		memcpy(&w, p, n);
		h = fold(h ^ w, GOLDEN ^ (seed << 1)); /* which is odd */
		size -= n;
	}
	return h;
}

void
table_release(struct table *t)
{
	arena_unmap(t->budget, t->slots, t->size * sizeof(*t->slots));
	table_init(t, t->budget);
}
