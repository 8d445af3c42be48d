/*
 * trails.c - sites by where a stack is, and what is on it.
 *
 *     places[hash of pc, stack above it, labels, size] --> a trail, its site, and the weight at one rate
 *
 * The bytes of stack above a call are the same in every thread that has come there the same way, so
 * threads share a trail.  A trail may be at two places.  Where both are taken, the one is replaced that others have
 * wanted CREDIT times since it was last found, so that more trails than places do not drive each other out all
 * the time; or the one of another rate, at once.
 *
 * What a stranger would get wrong: a place is read while another thread writes it.  `turn` is odd
 * meanwhile and another one afterwards, and who has read looks at it again.  A thread that never comes back
 * from writing costs this one place.
 *
 * Tests: tests/heap/test_trails.c.
 */
#include <config.h>

#include "trails.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "trail.h"

#define PLACE_BITS   9 /* 512 places, 256 KiB, touched as they come */
#define PAGE_BITS    3 /* of 8 places: both choices are in one page */
#define CHOICES      2
#define CREDIT       16
#define SITES        1024 /* of more, some share a count */
#define REFUSALS_MAX 4

/* Loaded and stored a word each, as two threads may be at it. */
struct place {
	_Alignas(512) _Atomic uint32_t turn;
	_Atomic uint32_t  site; /* 0: free */
	_Atomic uint64_t  pc, size, rate, weight;
	_Atomic uint32_t  labels;
	_Atomic uint32_t  credit; /* how often others may want the place before it is theirs */
	struct trail      trail;
};

_Static_assert(sizeof(struct place) == 512, "eight lines");

static _Alignas(512 << PAGE_BITS) struct place places[1 << PLACE_BITS];
/* By site: how often its stack had no trail.  Then nobody tries any more: that takes half as long as a walk. */
static _Atomic uint8_t refusals[SITES];

struct key {
	uint64_t pc, room, size, rate;
	uint32_t labels;
};

#define LOAD(member)         atomic_load_explicit(&(member), memory_order_relaxed)
#define STORE(member, value) atomic_store_explicit(&(member), value, memory_order_relaxed)

static uint64_t
hash(const struct key *k)
{
	uint64_t h = (k->pc ^ k->size << 32) * 0x9e3779b97f4a7c15ULL;

	return (h ^ k->room ^ (uint64_t)k->labels << 32) * 0x9e3779b97f4a7c15ULL;
}

static struct place *
place_at(uint64_t h, int choice)
{
	size_t first = h >> (64 - PLACE_BITS), others = (1 << PAGE_BITS) - 1;

	return &places[choice == 0 ? first : first ^ (1 + (h >> (64 - 2 * PLACE_BITS)) % others)];
}

static bool
is_of(const struct place *p, const struct key *k)
{
	return LOAD(p->pc) == k->pc && LOAD(p->size) == k->size && LOAD(p->labels) == k->labels &&
	       LOAD(p->rate) == k->rate;
}

/* The site that stands there, if it is this call's. */
static uint32_t
look(struct place *p, const struct key *k, const struct unwind_regs *regs, uint64_t *ret_weight)
{
	uint32_t turn = atomic_load_explicit(&p->turn, memory_order_acquire), site = LOAD(p->site);

	if (!site || turn % 2 || !is_of(p, k) || !trail_fits(&p->trail, regs, k->room))
		return 0;
	*ret_weight = LOAD(p->weight);
	atomic_thread_fence(memory_order_acquire);
	if (LOAD(p->turn) != turn)
		return 0;
	if (LOAD(p->credit) != CREDIT)
		STORE(p->credit, CREDIT);
	return site;
}

__attribute__((hot)) bool
heap_trails_find(const struct unwind_regs *regs, uint32_t labels, uint64_t rate, struct heap_block *b)
{
	struct key k = { regs->pc, trail_room(regs->sp), b->size, rate, labels };
	uint64_t   h = hash(&k);

	b->site = 0;
	for (int choice = 0; choice < CHOICES && !b->site && k.room; choice++)
		b->site = look(place_at(h, choice), &k, regs, &b->weight);
	return b->site != 0;
}

/* A free place, or one that nobody asks for any more, as nobody does at another rate; NULL: none. */
static struct place *
place_for(const struct key *k)
{
	struct place *p, *unused = NULL;
	uint64_t      h = hash(k);
	uint32_t      credit;

	for (int choice = 0; choice < CHOICES; choice++) {
		p = place_at(h, choice);
		if (LOAD(p->turn) % 2)
			continue;
		if (!LOAD(p->site) || LOAD(p->rate) != k->rate)
			return p;
		credit = LOAD(p->credit);
		if (credit == 0)
			unused = p;
		else
			STORE(p->credit, credit - 1);
	}
	return unused;
}

static void
write_place(struct place *p, const struct key *k, const struct trail *t, const struct heap_block *b)
{
	uint32_t turn = LOAD(p->turn), count = LOAD(t->count);

	if (turn % 2 || !atomic_compare_exchange_strong_explicit(&p->turn, &turn, turn + 1, memory_order_acquire, memory_order_relaxed))
		return;
	atomic_thread_fence(memory_order_release);
	STORE(p->pc, k->pc);
	STORE(p->size, k->size);
	STORE(p->rate, k->rate);
	STORE(p->weight, b->weight);
	STORE(p->labels, k->labels);
	STORE(p->credit, CREDIT);
	STORE(p->site, b->site);
	STORE(p->trail.live, LOAD(t->live));
	STORE(p->trail.count, count);
	for (uint32_t i = 0; i < count; i++)
		STORE(p->trail.words[i], LOAD(t->words[i]));
	atomic_store_explicit(&p->turn, turn + 2, memory_order_release);
}

void
heap_trails_add(const struct unwind_regs *regs, const uintptr_t *pcs, unsigned n, uint32_t labels,
		uint64_t rate, const struct heap_block *b)
{
	struct key       k = { regs->pc, trail_room(regs->sp), b->size, rate, labels };
	_Atomic uint8_t *refused = &refusals[b->site % SITES];
	struct place    *p;
	struct trail     t;

	if (!k.room || LOAD(*refused) >= REFUSALS_MAX || !(p = place_for(&k)))
		return;
	if (trail_make(&t, regs, pcs, n))
		write_place(p, &k, &t, b);
	else
		STORE(*refused, LOAD(*refused) + 1);
}
