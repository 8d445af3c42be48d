/*
 * set.c - a table of addresses that is read and written without a lock.
 *
 *     free(p) --> filter[p] == 0 --> not sampled              in the hook, nearly always
 *                 else level 0, 1, ...: one bucket of each, seven addresses
 *
 * An entry never moves: where its bucket is full in all levels, there is one more
 * level, four times as large.  A slot is taken by one exchange and given back by one store.
 *
 * Counting at a site may have to wait: the site is new, or somebody counts there just now.
 * Nobody waits for that inside malloc or free.  Such an entry is put on the list of those that
 * owe something, and whoever has heap_lock() next settles it:
 *
 *     add ----> counted                     remove ---> counted, the slot is free
 *          `--> OWES_ALLOCATED, listed             `--> OWES_FREED, listed; the slot is kept
 *
 * What a stranger would get wrong:
 * - Who looks for a block owns it.  So its entry cannot appear or vanish meanwhile; all
 *   others may, and do not matter.
 * - No level is ever given back: readers have no lock.  So there are few, and a sample that finds no
 *   slot in the last one is lost.
 * - An entry must be gone before the next free() gets the block: right after it
 *   another thread may be given the same address.
 * - An entry that is listed is in the settler's hands: its owner only adds what it owes.
 *   `owes` going from 0 to something decides who that is.
 * - A block that is freed and allocated again and again has one bucket in each level.  While its entries
 *   cannot be counted, more levels would hold nothing but them.  So the thread that counts is waited
 *   for, PAUSES_MAX times at most.  Then the sample is lost.
 * - A thread that dies in between (a child of fork has only one) leaves a slot BUSY or
 *   a count of a filter too high.  Neither harms.
 * - Functions that free without us (sdallocx, a heap destroyed whole) leave entries
 *   behind.  A new sample at the same address replaces one; an unsampled block
 *   there counts as that sample freed late.
 *
 * Why not one table that grows by rehashing: all threads would have to stand still, or look
 * into two tables whose entries move.
 * Tests: tests/heap/test_set.c.
 */
#include <config.h>

#include "set.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "futex.h"
#include "hot.h"
#include "labels.h"
#include "lock.h"
#include "pages.h"
#include "stack_table.h"

#define SLOTS       7  /* of a bucket */
#define FIRST_BITS  8  /* 256 buckets, 1,792 blocks: 0.9 GiB in use at the default rate; 128 KiB, touched as they come */
#define LEVEL_BITS  2  /* the next level has four times as many */
#define LEVELS      6  /* 180 MB; a million blocks find a slot: half a TiB in use at the default rate */
#define PAUSES_MAX  20 /* for one sample */
#define PAUSE_NS    50000
#define BUSY        ((uintptr_t)1) /* being filled in, or gone and not yet counted */
#define FULL_COUNT  UINT8_MAX      /* of a filter: it sticks */

enum { OWES_ALLOCATED = 1, OWES_FREED = 2 };

/* One line of the cache. */
struct heap_entry {
	_Alignas(64) struct heap_block info;
	_Atomic uint32_t   owes;
	struct heap_entry *next; /* of those that owe something */
	_Atomic uintptr_t *slot;
};

/* Addresses in one line, and what is known of each behind it.  A sample touches two lines of one page.  A
 * page that is not in the TLB costs more than a line that is not in the cache, above all in a virtual machine. */
struct heap_bucket {
	_Alignas(512) _Atomic uintptr_t blocks[SLOTS];
	struct heap_entry entries[SLOTS];
};

_Static_assert(sizeof(struct heap_bucket) == 512, "in one page");

/* The first one is in heap_hot. */
static _Atomic(struct heap_bucket *) further[LEVELS - 1];
static struct hooks_filter own_filter;
static _Atomic uint64_t    lost;
static _Atomic uint32_t    nobody_wakes;

/* ---- the filter ---- */

static void
filter_raise(uint8_t *count)
{
	uint8_t was = __atomic_load_n(count, __ATOMIC_RELAXED);

	while (was != FULL_COUNT &&
	       !__atomic_compare_exchange_n(count, &was, was + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void
filter_lower(uint8_t *count)
{
	uint8_t was = __atomic_load_n(count, __ATOMIC_RELAXED);

	while (was != FULL_COUNT && was != 0 &&
	       !__atomic_compare_exchange_n(count, &was, was - 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void
filter_add(uintptr_t block)
{
	filter_raise(&heap_hot.filter->hashed[HOOKS_FILTER_HASH(block)]);
	filter_raise(&heap_hot.filter->low[hooks_filter_low((const void *)block)]);
}

static void
filter_remove(uintptr_t block)
{
	filter_lower(&heap_hot.filter->low[hooks_filter_low((const void *)block)]);
	filter_lower(&heap_hot.filter->hashed[HOOKS_FILTER_HASH(block)]);
}

/* ---- the table ---- */

static _Atomic(struct heap_bucket *) *
level(int k)
{
	return k == 0 ? &heap_hot.level : &further[k - 1];
}

/* NULL: nobody has needed it so far. */
static struct heap_bucket *
level_at(int k)
{
	return k < LEVELS ? atomic_load_explicit(level(k), memory_order_acquire) : NULL;
}

static size_t
level_buckets(int k)
{
	return (size_t)1 << (FIRST_BITS + k * LEVEL_BITS);
}

static struct heap_bucket *
bucket_of(struct heap_bucket *l, int k, uintptr_t block)
{
	return &l[(block >> 4) * 0x9e3779b97f4a7c15ULL >> (64 - FIRST_BITS - k * LEVEL_BITS)];
}

/* The level, which is made if need be: two threads may make it at once. */
static struct heap_bucket *
level_get(int k)
{
	struct heap_bucket *l = level_at(k), *have = NULL;
	size_t              size = level_buckets(k) * sizeof(*l);
	int                 saved = errno;

	if (l)
		return l;
	l = pages_map(size);
	if (!l) {
		errno = saved;
		return NULL;
	}
	if (!atomic_compare_exchange_strong(level(k), &have, l)) {
		pages_unmap(l, size);
		l = have;
	}
	errno = saved;
	return l;
}

static __attribute__((hot)) struct heap_entry *
look_up(uintptr_t block)
{
	struct heap_bucket *l;

	if (__atomic_load_n(&heap_hot.filter->hashed[HOOKS_FILTER_HASH(block)], __ATOMIC_RELAXED) == 0)
		return NULL;
	for (int k = 0; (l = level_at(k)) != NULL; k++) {
		struct heap_bucket *b = bucket_of(l, k, block);

		for (int i = 0; i < SLOTS; i++)
			if (atomic_load_explicit(&b->blocks[i], memory_order_acquire) == block)
				return &b->entries[i];
	}
	return NULL;
}

/* ---- what is owed ---- */

static __attribute__((noinline, cold)) void
list(struct heap_entry *e)
{
	e->next = atomic_load_explicit(&heap_hot.debtors, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&heap_hot.debtors, &e->next, e, memory_order_release,
			memory_order_relaxed))
		;
}

static void
settle_allocated(struct heap_block *b)
{
	if (heap_site_resolve(b)) {
		heap_site_allocated(b);
		return;
	}
	stack_table_unref(b->stack);
	labels_unref(b->labels);
	b->stack = b->labels = 0;
	atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
}

static void
settle_one(struct heap_entry *e)
{
	uint32_t owes = atomic_load_explicit(&e->owes, memory_order_acquire), paid = 0;

	do {
		if (owes & ~paid & OWES_ALLOCATED)
			settle_allocated(&e->info);
		if (owes & ~paid & OWES_FREED && e->info.site)
			heap_site_freed(&e->info);
		paid |= owes;
	} while (!atomic_compare_exchange_strong_explicit(&e->owes, &owes, 0, memory_order_acq_rel, memory_order_acquire));
	if (paid & OWES_FREED)
		atomic_store_explicit(e->slot, 0, memory_order_release);
}

void
heap_set_settle(void)
{
	struct heap_entry *e, *next;

	for (e = atomic_exchange_explicit(&heap_hot.debtors, NULL, memory_order_acquire); e; e = next) {
		next = e->next; /* its owner may list it again as soon as it owes nothing */
		settle_one(e);
	}
}

/* Looks again after giving the lock back: somebody may have listed an entry and not got it. */
static __attribute__((noinline, cold)) void
settle_if_possible(void)
{
	struct heap_lock_hold hold;

	while (atomic_load_explicit(&heap_hot.debtors, memory_order_relaxed) && heap_lock_try(&hold)) {
		heap_set_settle();
		heap_unlock(&hold);
	}
}

/* A slot that is ours from now on, BUSY.  NULL: all are taken.  *ret_gone is how many of these wait to be
 * counted and have no block any more; *ret_levels is how many levels there are. */
static __attribute__((hot)) struct heap_entry *
slot_try(uintptr_t block, int *ret_gone, int *ret_levels)
{
	struct heap_bucket *l;
	int                 k;

	*ret_gone = 0;
	for (k = 0; (l = level_at(k)) != NULL; k++) {
		struct heap_bucket *b = bucket_of(l, k, block);

		for (int i = 0; i < SLOTS; i++) {
			uintptr_t was = atomic_load_explicit(&b->blocks[i], memory_order_relaxed);

			*ret_gone += was == BUSY;
			if (was == 0 && atomic_compare_exchange_strong_explicit(&b->blocks[i], &was, BUSY, memory_order_acquire,
					memory_order_relaxed)) {
				b->entries[i].slot = &b->blocks[i];
				return &b->entries[i];
			}
		}
	}
	*ret_levels = k;
	return NULL;
}

/* All slots are taken: makes one more level, or waits a little for those whose blocks are gone.  NULL: neither
 * has helped. */
static __attribute__((noinline, cold)) struct heap_entry *
slot_make(uintptr_t block)
{
	struct heap_entry *e;
	int                gone, levels_now;

	for (int pauses = 0; !(e = slot_try(block, &gone, &levels_now)); ) {
		if (gone < levels_now * SLOTS / 2) {
			if (levels_now == LEVELS || !level_get(levels_now))
				return NULL;
		} else if (pauses++ < PAUSES_MAX) {
			futex_wait(&nobody_wakes, 0, PAUSE_NS); /* sched_yield() is no call that a filter was told of */
			settle_if_possible();
		} else {
			return NULL;
		}
	}
	return e;
}

uint64_t
heap_set_lost(void)
{
	return atomic_load_explicit(&lost, memory_order_relaxed);
}

/* ---- the doors ---- */

int
heap_set_init(struct hooks_filter *of_hooks)
{
	if (!heap_hot.filter)
		heap_hot.filter = of_hooks ? of_hooks : &own_filter;
	return level_get(0) ? 0 : -ENOMEM;
}

bool
heap_set_has(const void *block)
{
	return look_up((uintptr_t)block) != NULL;
}

bool
heap_set_find(const void *block, struct heap_block *ret)
{
	struct heap_entry *e = look_up((uintptr_t)block);

	if (e)
		*ret = e->info;
	return e != NULL;
}

__attribute__((hot)) bool
heap_set_add(const void *block, const struct heap_block *b)
{
	struct heap_entry *e;
	bool               counted;
	int                gone, levels_now;

	heap_set_remove(block); /* freed behind our back */
	e = slot_try((uintptr_t)block, &gone, &levels_now);
	if (!e && !(e = slot_make((uintptr_t)block)))
		return false;
	e->info = *b;
	counted = b->site && heap_site_try_allocated(b);
	atomic_store_explicit(&e->owes, counted ? 0 : OWES_ALLOCATED, memory_order_relaxed);
	filter_add((uintptr_t)block);
	atomic_store_explicit(e->slot, (uintptr_t)block, memory_order_release);
	if (counted)
		return true;
	list(e);
	settle_if_possible();
	if (b->site == 0 && atomic_load_explicit(&e->owes, memory_order_acquire) == 0)
		heap_site_remember(&e->info);
	return true;
}

__attribute__((hot)) bool
heap_set_remove(const void *block)
{
	struct heap_entry *e = look_up((uintptr_t)block);

	if (!e)
		return false;
	filter_remove((uintptr_t)block);
	atomic_store_explicit(e->slot, BUSY, memory_order_relaxed);
	if (atomic_fetch_or_explicit(&e->owes, OWES_FREED, memory_order_acq_rel) != 0)
		return true; /* whoever settles it sees that */
	if (e->info.site && heap_site_try_freed(&e->info)) {
		atomic_store_explicit(&e->owes, 0, memory_order_relaxed);
		atomic_store_explicit(e->slot, 0, memory_order_release);
		return true;
	}
	list(e);
	settle_if_possible();
	return true;
}
