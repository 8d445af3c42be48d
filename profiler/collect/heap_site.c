/*
 * heap_site.c - sites in an array that never moves, found by a table of indexes.
 *
 *     slots[hash of stack id] --> site number --> chunks[n / 1024][n % 1024]
 *
 * What a stranger would get wrong: sites are never removed, so a number kept in
 * a block that lives for a year still names its site.  Memory comes from mmap: this
 * runs inside malloc.
 * Tests: tests/test_heap_set.c, tests/test_heap.c.
 */
#include <config.h>

#include "heap_site.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "heap_rate.h"
#include "stack_table.h"

#define CHUNK_SITES 1024
#define CHUNKS_MAX  65536 /* 64 Mi sites: more stacks than 4 GiB of stack table hold */
#define SLOTS_FIRST 1024

struct site {
	struct heap_counts counts;
	uint32_t           stack;
};

static struct site    *chunks[CHUNKS_MAX];
static _Atomic size_t  count; /* number 0 is not used */
static uint32_t       *slots;
static size_t          slot_count; /* a power of two */

static void *
map(size_t size)
{
	int   saved = errno;
	void *mem;

	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	errno = saved;
	return mem == MAP_FAILED ? NULL : mem;
}

static struct site *
site_at(uint32_t number)
{
	return &chunks[number / CHUNK_SITES][number % CHUNK_SITES];
}

/* The slot of this stack, or the empty one where it belongs. */
static uint32_t *
slot_of(uint32_t *table, size_t size, uint32_t stack)
{
	size_t i = (stack * 0x9e3779b1U >> 7) & (size - 1);

	while (table[i] && site_at(table[i])->stack != stack)
		i = (i + 1) & (size - 1);
	return &table[i];
}

/* At most half full; the old table is given back. */
static bool
slots_grow(void)
{
	size_t    size = slot_count ? slot_count * 2 : SLOTS_FIRST;
	uint32_t *table;
	int       saved = errno;

	if (slots && count * 2 < slot_count)
		return true;
	table = map(size * sizeof(*table));
	if (!table)
		return false;
	for (size_t i = 1; i <= count; i++)
		*slot_of(table, size, site_at(i)->stack) = (uint32_t)i;
	if (slots)
		munmap(slots, slot_count * sizeof(*slots));
	slots = table;
	slot_count = size;
	errno = saved;
	return true;
}

uint32_t
heap_site_of(uint32_t stack)
{
	uint32_t *slot, number;

	if (!slots_grow())
		return 0;
	slot = slot_of(slots, slot_count, stack);
	if (*slot) {
		stack_table_unref(stack); /* the site has its own */
		return *slot;
	}
	number = (uint32_t)count + 1;
	if (number / CHUNK_SITES >= CHUNKS_MAX)
		return 0;
	if (!chunks[number / CHUNK_SITES])
		chunks[number / CHUNK_SITES] = map(CHUNK_SITES * sizeof(struct site));
	if (!chunks[number / CHUNK_SITES])
		return 0;
	site_at(number)->stack = stack;
	*slot = number;
	count = number;
	return number;
}

bool
heap_site_resolve(struct heap_block *b)
{
	if (b->site == 0)
		b->site = heap_site_of(b->stack);
	return b->site != 0;
}

void
heap_site_allocated(const struct heap_block *b)
{
	struct heap_counts *c = &site_at(b->site)->counts;

	c->alloc_objects++;
	c->alloc_bytes += b->size;
	c->alloc_weight += b->weight;
	c->alloc_scaled += heap_weight_bytes(b->size, b->weight);
}

void
heap_site_freed(const struct heap_block *b)
{
	struct heap_counts *c = &site_at(b->site)->counts;

	c->free_objects++;
	c->free_bytes += b->size;
	c->free_weight += b->weight;
	c->free_scaled += heap_weight_bytes(b->size, b->weight);
}

bool
heap_site_read(size_t i, uint32_t *ret_stack, struct heap_counts *ret)
{
	if (i >= count)
		return false;
	*ret_stack = site_at((uint32_t)i + 1)->stack;
	*ret = site_at((uint32_t)i + 1)->counts;
	return true;
}

size_t
heap_site_count(void)
{
	return count;
}
