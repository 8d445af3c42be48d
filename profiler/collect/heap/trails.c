/*
 * trails.c - sites by where a stack is, and what is on it.
 *
 *     places[hash of pc, stack above it, labels, size] --> a trail and its site
 *
 * The bytes of stack above a call are the same in every thread that has come there the same way, so
 * threads share a trail.  Each has two places to be at.  Who finds both taken waits until one of them has been
 * wanted CREDIT times by others since it was last found, so that more stacks than places do not
 * drive out each other all the time.
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

#define PLACE_BITS  9 /* 512 places, 256 KiB, touched as they come */
#define CHOICES     2
#define CREDIT      16

/* Loaded and stored a word each, as two threads may be at it. */
struct place {
	_Alignas(512) _Atomic uint32_t turn;
	_Atomic uint32_t  site; /* 0: free */
	_Atomic uint64_t  pc, size;
	_Atomic uint32_t  labels;
	_Atomic uint32_t  credit; /* how often others may want the place before it is theirs */
	struct trail      trail;
};

_Static_assert(sizeof(struct place) == 512, "eight lines");

static struct place places[1 << PLACE_BITS];

struct key {
	uint64_t pc, room, size;
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
	return &places[h >> (64 - PLACE_BITS * (1 + choice)) & ((1 << PLACE_BITS) - 1)];
}

static bool
is_of(const struct place *p, const struct key *k)
{
	return LOAD(p->pc) == k->pc && LOAD(p->size) == k->size && LOAD(p->labels) == k->labels;
}

/* The site that stands there, if it is this call's. */
static uint32_t
look(struct place *p, const struct key *k, const struct unwind_regs *regs)
{
	uint32_t turn = atomic_load_explicit(&p->turn, memory_order_acquire), site = LOAD(p->site);

	if (!site || turn % 2 || !is_of(p, k) || !trail_fits(&p->trail, regs, k->room))
		return 0;
	atomic_thread_fence(memory_order_acquire);
	if (LOAD(p->turn) != turn)
		return 0;
	if (LOAD(p->credit) != CREDIT)
		STORE(p->credit, CREDIT);
	return site;
}

uint32_t
heap_trails_find(const struct unwind_regs *regs, uint32_t labels, uint64_t size)
{
	struct key k = { regs->pc, trail_room(regs->sp), size, labels };
	uint64_t   h = hash(&k);
	uint32_t   site = 0;

	for (int choice = 0; choice < CHOICES && !site && k.room; choice++)
		site = look(place_at(h, choice), &k, regs);
	return site;
}

/* Its own, where its stack is another one now, or a free one, or one that nobody asks for; NULL: none. */
static struct place *
place_for(const struct key *k)
{
	struct place *p, *unused = NULL;
	uint64_t      h = hash(k);
	uint32_t      credit;

	for (int choice = 0; choice < CHOICES; choice++) {
		p = place_at(h, choice);
		if (!LOAD(p->site) || is_of(p, k))
			return p;
		credit = LOAD(p->credit);
		if (credit == 0)
			unused = p;
		else
			STORE(p->credit, credit - 1);
	}
	return unused;
}

void
heap_trails_add(const struct unwind_regs *regs, const uintptr_t *pcs, unsigned n, uint32_t labels, uint64_t size,
		uint32_t site)
{
	struct key    k = { regs->pc, trail_room(regs->sp), size, labels };
	struct place *p = k.room ? place_for(&k) : NULL;
	uint32_t      turn = p ? LOAD(p->turn) : 1;

	if (turn % 2 || !atomic_compare_exchange_strong_explicit(&p->turn, &turn, turn + 1, memory_order_acquire, memory_order_relaxed))
		return;
	atomic_thread_fence(memory_order_release);
	STORE(p->pc, k.pc);
	STORE(p->size, k.size);
	STORE(p->labels, k.labels);
	STORE(p->credit, CREDIT);
	STORE(p->site, trail_make(&p->trail, regs, pcs, n) ? site : 0);
	atomic_store_explicit(&p->turn, turn + 2, memory_order_release);
}
