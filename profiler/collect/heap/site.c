/*
 * site.c - sites in an array that never moves, found by a table of indexes.
 *
 *     slots[hash of stack id and label set]  --> the first of their sites --> the next size's ...
 *     recent[hash of pcs, label set, size]   --> site number        without a lock
 *     site number n --> chunks[n / 1024][n % 1024]; heap_hot.sites stands for chunks[0]
 *
 * A site counts twice: some sums belong to whoever has set `taken`, the locked ones to the
 * holder of heap_lock().  Who cannot have the first at once takes the lock for the
 * second, so nobody ever waits for a thread that was interrupted in between, and one
 * that never comes back costs this site its quick way and nothing else.
 *
 * What a stranger would get wrong:
 * - Sites are never removed, so a number kept in a block that lives for a year still
 *   names its site, and its stack is never taken out of the stack table.
 * - Which site a size belongs to never changes: whoever came after the first few sizes has
 *   found no room among them, and there never will be.
 * - `recent` holds only stacks whose addresses will mean the same for ever: of plugins
 *   the stack table must ask each time (generations_ranges.c).
 * - Memory comes from mmap: this runs inside malloc.
 *
 * Why not eight atomic additions a block: a reader would see blocks whose bytes are
 * counted and whose number is not.
 * Tests: tests/heap/test_set.c, tests/heap/test_heap.c.
 */
#include <config.h>

#include "site.h"

#include <errno.h>
#include <stdatomic.h>

#include "generations.h"
#include "hot.h"
#include "labels.h"
#include "pages.h"
#include "rate.h"
#include "stack_table.h"

#define CHUNK_SITES 1024
#define CHUNKS_MAX  65536 /* 64 Mi sites: more stacks than 4 GiB of stack table hold */
#define SLOTS_FIRST 1024
#define RECENT_SETS 2048 /* of two: 32 KiB, touched as stacks come */

struct sum {
	uint64_t objects, bytes, weight, scaled;
};

/* A block that is allocated touches the first line, one that is freed the second, too. */
struct heap_site {
	_Alignas(64) _Atomic uint32_t taken;
	uint32_t     next; /* site of the same stack and labels; 0: the last */
	struct sum   allocated;  /* who has `taken` */
	struct heap_site_key key;
	bool         stuck;  /* who has heap_lock(): whoever has `taken` is not expected back */
	bool         shared; /* by all sizes of this power of two */
	bool         first;  /* of its stack and labels: this one is in the slots */
	_Alignas(64) struct sum freed; /* who has `taken` */
	struct sum   locked_allocated, locked_freed; /* who has heap_lock() */
};

static struct heap_site *chunks[CHUNKS_MAX]; /* but the first, which is in heap_hot */
static _Atomic size_t  count; /* number 0 is not used */
static uint32_t       *slots;
static size_t          slot_count; /* a power of two */
static size_t          labelled;
static size_t          stack_bytes, labels_bytes; /* held for ever */
static _Atomic uint64_t unlabelled, stackless;
static _Atomic uint64_t recent[RECENT_SETS][2]; /* hash << 32 | site; the newer one first */

static void *
map(size_t size)
{
	int   saved = errno;
	void *mem = pages_map(size);

	errno = saved;
	return mem;
}

static struct heap_site *
site_at(uint32_t number)
{
	return &(number < CHUNK_SITES ? heap_hot.sites : chunks[number / CHUNK_SITES])[number % CHUNK_SITES];
}

/* The slot of these two, or the empty one where it belongs. */
static uint32_t *
slot_of(uint32_t *table, size_t size, uint32_t stack, uint32_t labels)
{
	size_t i = ((stack ^ labels << 9) * 0x9e3779b1U >> 7) & (size - 1);

	while (table[i] && (site_at(table[i])->key.stack != stack || site_at(table[i])->key.labels != labels))
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
	for (uint32_t i = 1; i <= count; i++)
		if (site_at(i)->first)
			*slot_of(table, size, site_at(i)->key.stack, site_at(i)->key.labels) = i;
	pages_unmap(slots, slot_count * sizeof(*slots));
	slots = table;
	slot_count = size;
	errno = saved;
	return true;
}

/* The references are the site's from now on; 0 without memory. */
static uint32_t
site_new(const struct heap_site_key *key)
{
	uint32_t           number = (uint32_t)count + 1;
	struct heap_site **chunk = number < CHUNK_SITES ? &heap_hot.sites : &chunks[number / CHUNK_SITES];

	if (number / CHUNK_SITES >= CHUNKS_MAX)
		return 0;
	if (!*chunk)
		*chunk = map(CHUNK_SITES * sizeof(struct heap_site));
	if (!*chunk)
		return 0;
	site_at(number)->key = *key;
	labelled += key->labels != 0;
	count = number;
	return number;
}

static uint64_t
power_of_two(uint64_t size)
{
	return size <= 1 ? size : (uint64_t)1 << (64 - __builtin_clzll(size - 1));
}

static bool
holds(const struct heap_site *s, uint64_t size)
{
	return s->key.bytes == (s->shared ? power_of_two(size) : size);
}

/* The site of a size among those of its stack and labels, or 0, and then what a new one would be. */
static uint32_t
site_of_size(uint32_t first, uint64_t size, uint32_t *ret_last, bool *ret_shared)
{
	unsigned exact = 0;

	*ret_last = 0;
	for (uint32_t i = first; i; i = site_at(i)->next) {
		if (holds(site_at(i), size))
			return i;
		exact += !site_at(i)->shared;
		*ret_last = i;
	}
	*ret_shared = exact >= HEAP_SITE_SIZES;
	return 0;
}

static bool
labels_fit(uint32_t labels, bool first)
{
	return labelled < HEAP_SITES_LABELLED &&
	       (!first || stack_table_keep(labels, &labels_bytes, stack_table_limit() / LABELS_PART / HEAP_SITES_PART));
}

static bool
stack_fits(uint32_t stack)
{
	return stack_table_keep(stack, &stack_bytes, stack_table_limit() / HEAP_SITES_PART);
}

uint32_t
heap_site_of(uint32_t stack, uint32_t labels, uint64_t size)
{
	struct heap_site_key key = { stack, labels, size };
	uint32_t            *slot, number, last;
	bool                 shared, known;

	if (!slots_grow())
		return 0;
	slot = slot_of(slots, slot_count, stack, labels);
	number = site_of_size(*slot, size, &last, &shared);
	if (!number && labels && !labels_fit(labels, *slot == 0)) {
		key.labels = 0;
		slot = slot_of(slots, slot_count, stack, 0);
		number = site_of_size(*slot, size, &last, &shared);
	}
	if (*slot == 0 && !stack_fits(stack)) {
		key.stack = STACK_PSEUDO_FULL;
		slot = slot_of(slots, slot_count, key.stack, key.labels);
		number = site_of_size(*slot, size, &last, &shared);
	}
	known = number != 0;
	if (!known) {
		key.bytes = shared ? power_of_two(size) : size;
		number = site_new(&key);
	}
	if (!number)
		return 0;
	if (known || key.stack != stack)
		stack_table_unref(stack); /* the site has its own */
	if (known || key.labels != labels)
		labels_unref(labels);
	unlabelled += key.labels != labels;
	stackless += key.stack != stack;
	if (known)
		return number;
	site_at(number)->shared = shared;
	site_at(number)->first = last == 0;
	if (last)
		site_at(last)->next = number;
	else
		*slot = number;
	return number;
}

bool
heap_site_resolve(struct heap_block *b)
{
	if (b->site == 0)
		b->site = heap_site_of(b->stack, b->labels, b->size);
	return b->site != 0;
}

/* ---- by the addresses of a stack ---- */

static uint64_t
site_hash(const uintptr_t *pcs, unsigned n, uint32_t labels, uint64_t size)
{
	uint64_t h = n ^ size << 16;

	for (unsigned i = 0; i < n; i++)
		h = (h ^ pcs[i]) * 0x9e3779b97f4a7c15ULL;
	h = (h ^ labels) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 32;
}

uint32_t
heap_site_find(const uintptr_t *pcs, unsigned n, uint32_t labels, uint64_t size)
{
	uint64_t         h = site_hash(pcs, n, labels, size), entry;
	const struct heap_site *s;
	const uintptr_t *have;
	unsigned         have_n, same;

	for (int k = 0; k < 2; k++) {
		entry = atomic_load_explicit(&recent[h % RECENT_SETS][k], memory_order_acquire);
		if (!entry || (entry ^ h) >> 32)
			continue;
		s = site_at((uint32_t)entry);
		have = stack_table_pcs(s->key.stack, &have_n);
		if (have_n != n || s->key.labels != labels || !holds(s, size))
			continue;
		for (same = 0; same < n && have[same] == pcs[same]; same++)
			;
		if (same == n)
			return (uint32_t)entry;
	}
	return 0;
}

struct settled {
	const uintptr_t *pcs;
	unsigned         n;
	bool             is;
};

static void
ask_settled(void *arg)
{
	struct settled *s = arg;

	s->is = generations_settled(s->pcs, s->n);
}

void
heap_site_remember(const struct heap_block *b)
{
	uint32_t         site = b->site;
	struct settled   s = { .is = false };
	_Atomic uint64_t *set;
	uint64_t         h, was;

	if (site == 0)
		return;
	s.pcs = stack_table_pcs(site_at(site)->key.stack, &s.n);
	if (!stack_table_exclusively(ask_settled, &s) || !s.is)
		return;
	h = site_hash(s.pcs, s.n, site_at(site)->key.labels, b->size);
	set = recent[h % RECENT_SETS];
	was = atomic_load_explicit(&set[0], memory_order_relaxed);
	if (was == ((h >> 32) << 32 | site))
		return;
	atomic_store_explicit(&set[1], was, memory_order_release);
	atomic_store_explicit(&set[0], (h >> 32) << 32 | site, memory_order_release);
}

/* ---- counting ---- */

static bool
site_take(struct heap_site *s)
{
	return atomic_load_explicit(&s->taken, memory_order_relaxed) == 0 &&
	       atomic_exchange_explicit(&s->taken, 1, memory_order_acquire) == 0;
}

static void
site_leave(struct heap_site *s)
{
	atomic_store_explicit(&s->taken, 0, memory_order_release);
}

static void
add(struct sum *s, const struct heap_block *b)
{
	s->objects++;
	s->bytes += b->size;
	s->weight += b->weight;
	s->scaled += heap_weight_bytes(b->size, b->weight);
}

__attribute__((hot)) bool
heap_site_try_allocated(const struct heap_block *b)
{
	struct heap_site *s = site_at(b->site);

	if (!site_take(s))
		return false;
	add(&s->allocated, b);
	site_leave(s);
	return true;
}

__attribute__((hot)) bool
heap_site_try_freed(const struct heap_block *b)
{
	struct heap_site *s = site_at(b->site);

	if (!site_take(s))
		return false;
	add(&s->freed, b);
	site_leave(s);
	return true;
}

/* A sum may wrap below 0, where the block was counted in the locked one: readers add both. */
static void
subtract(struct sum *s, const struct heap_block *b)
{
	s->objects--;
	s->bytes -= b->size;
	s->weight -= b->weight;
	s->scaled -= heap_weight_bytes(b->size, b->weight);
}

void
heap_site_uncount(const struct heap_block *b)
{
	struct heap_site *s = site_at(b->site);

	if (!site_take(s))
		return;
	subtract(&s->allocated, b);
	subtract(&s->freed, b);
	site_leave(s);
}

void
heap_site_allocated(const struct heap_block *b)
{
	add(&site_at(b->site)->locked_allocated, b);
}

void
heap_site_freed(const struct heap_block *b)
{
	add(&site_at(b->site)->locked_freed, b);
}

int
heap_site_read(size_t i, bool anyway, struct heap_site_key *ret_key, struct heap_counts *ret)
{
	const struct sum *a, *al, *f, *fl;
	struct heap_site *s;
	bool              taken;

	if (i >= count)
		return 0;
	s = site_at((uint32_t)i + 1);
	taken = site_take(s);
	if (!taken && !s->stuck && !anyway)
		return -EBUSY;
	a = &s->allocated, al = &s->locked_allocated;
	f = &s->freed, fl = &s->locked_freed;
	*ret_key = s->key;
	*ret = (struct heap_counts){
		a->objects + al->objects, a->bytes + al->bytes, f->objects + fl->objects, f->bytes + fl->bytes,
		a->weight + al->weight, a->scaled + al->scaled, f->weight + fl->weight, f->scaled + fl->scaled,
	};
	s->stuck = !taken;
	if (taken)
		site_leave(s);
	return 1;
}

size_t
heap_site_count(void)
{
	return count;
}

uint64_t
heap_site_unlabelled(void)
{
	return unlabelled;
}

uint64_t
heap_site_stackless(void)
{
	return stackless;
}
