/*
 * heap_set.c - an open-addressed table that is read without a lock.
 *
 *     free(p) --> filter[hash] == 0 --> not sampled       one byte, nearly always
 *                 else table[hash ...] == p ?             then the lock, to remove
 *
 * What a stranger would get wrong:
 * - A reader looks for its own block, which it may free right now.  So the entry
 *   cannot appear or vanish under it; all others may, and do not matter.
 * - Growing leaves the old table in place for readers that are in it; it still
 *   has what they look for, for the reason above.  It is used again two changes
 *   later at the earliest; a reader asleep for all that time could miss its entry,
 *   which makes one count wrong and nothing else.
 * - An entry must be gone before the next free() gets the block: right after it
 *   another thread may be given the same address.
 * - Functions that free without us (sdallocx, a heap destroyed whole) leave entries
 *   behind.  A new sample at the same address replaces one; an unsampled block
 *   there counts as that sample freed late.
 *
 * Tests: tests/test_heap_set.c.
 */
#include <config.h>

#include "heap_set.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

#include "heap_lock.h"

#define FILTER_SIZE 65536 /* counts of one byte: 64 KiB stay in the second-level cache */
#define TABLE_FIRST 4096
#define GONE        ((uintptr_t)1) /* was removed: the search goes on */

struct entry {
	_Atomic uintptr_t block;
	struct heap_block info;
};

struct table {
	size_t       size; /* a power of two */
	size_t       used; /* GONE ones too */
	size_t       live;
	struct entry entries[];
};

static _Atomic(struct table *) current;
static struct table           *spare; /* left behind last; used again when entries only come and go */
static _Atomic uint8_t filter[FILTER_SIZE]; /* 255 sticks */

static uint64_t
hash_of(uintptr_t block)
{
	return (block >> 4) * 0x9e3779b97f4a7c15ULL;
}

static _Atomic uint8_t *
filter_of(uintptr_t block)
{
	return &filter[hash_of(block) >> 48 & (FILTER_SIZE - 1)];
}

static struct table *
table_new(size_t size)
{
	int           saved = errno;
	struct table *t;

	t = mmap(NULL, sizeof(*t) + size * sizeof(struct entry), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	errno = saved;
	if (t == MAP_FAILED)
		return NULL;
	t->size = size;
	return t;
}

static struct entry *
entry_find(struct table *t, uintptr_t block)
{
	size_t    i = hash_of(block) >> 16 & (t->size - 1);
	uintptr_t at;

	while ((at = atomic_load_explicit(&t->entries[i].block, memory_order_acquire)) != 0) {
		if (at == block)
			return &t->entries[i];
		i = (i + 1) & (t->size - 1);
	}
	return NULL;
}

/* Into a table that has room; the block is not in it. */
static void
entry_put(struct table *t, uintptr_t block, const struct heap_block *b)
{
	size_t i = hash_of(block) >> 16 & (t->size - 1);

	while (atomic_load_explicit(&t->entries[i].block, memory_order_relaxed) > GONE)
		i = (i + 1) & (t->size - 1);
	if (t->entries[i].block == 0)
		t->used++;
	t->live++;
	t->entries[i].info = *b;
	atomic_store_explicit(&t->entries[i].block, block, memory_order_release);
}

/* An emptied table of this size: the one before last, or a new one. */
static struct table *
table_empty(size_t size)
{
	struct table *t = spare;

	if (!t || t->size != size)
		return table_new(size);
	spare = NULL;
	t->used = t->live = 0;
	for (size_t i = 0; i < size; i++)
		atomic_store_explicit(&t->entries[i].block, 0, memory_order_relaxed);
	return t;
}

static bool
make_room(void)
{
	struct table *t = current, *larger;

	if (t->used * 4 < t->size * 3)
		return true;
	larger = table_empty(t->live * 2 < t->size ? t->size : t->size * 2);
	if (!larger)
		return t->used + 1 < t->size;
	spare = t;
	for (size_t i = 0; i < t->size; i++)
		if (t->entries[i].block > GONE)
			entry_put(larger, t->entries[i].block, &t->entries[i].info);
	atomic_store_explicit(&current, larger, memory_order_release);
	return true;
}

static void
entry_remove(struct entry *e)
{
	_Atomic uint8_t *f = filter_of(e->block);

	heap_site_freed(&e->info);
	atomic_store_explicit(&e->block, GONE, memory_order_release);
	current->live--;
	if (*f != UINT8_MAX)
		--*f;
}

int
heap_set_init(void)
{
	if (!current)
		current = table_new(TABLE_FIRST);
	return current ? 0 : -ENOMEM;
}

static struct entry *
look_up(const void *block)
{
	if (atomic_load_explicit(filter_of((uintptr_t)block), memory_order_relaxed) == 0)
		return NULL;
	return entry_find(atomic_load_explicit(&current, memory_order_acquire), (uintptr_t)block);
}

bool
heap_set_has(const void *block)
{
	return look_up(block) != NULL;
}

bool
heap_set_find(const void *block, struct heap_block *ret)
{
	struct entry *e = look_up(block);

	if (e)
		*ret = e->info;
	return e != NULL;
}

bool
heap_set_add(const void *block, struct heap_block *b)
{
	struct heap_lock_hold hold;
	struct entry         *stale;
	_Atomic uint8_t      *f = filter_of((uintptr_t)block);
	bool                  room;

	if (!heap_lock(&hold))
		return false;
	stale = entry_find(current, (uintptr_t)block);
	if (stale)
		entry_remove(stale);
	room = heap_site_resolve(b) && make_room();
	if (room) {
		entry_put(current, (uintptr_t)block, b);
		if (*f != UINT8_MAX)
			++*f;
		heap_site_allocated(b);
	}
	heap_unlock(&hold);
	return room;
}

bool
heap_set_remove(const void *block, struct heap_block *ret)
{
	struct heap_lock_hold hold;
	struct entry         *e;

	if (!heap_set_has(block) || !heap_lock(&hold))
		return false;
	e = entry_find(current, (uintptr_t)block);
	if (e) {
		*ret = e->info;
		entry_remove(e);
	}
	heap_unlock(&hold);
	return e != NULL;
}
