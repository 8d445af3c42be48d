/*
 * ring.c - many signal handlers write, one thread reads, nobody waits.
 *
 * Records of differing length lie one behind the other in a ring of bytes:
 *
 *        tail (reader)                               head (writers)
 *          v                                           v
 *     ---- [size slot weight labels count pcs...] [0 ...] ---- zeros ----
 *                                                   ^ taken, not complete yet
 *
 * A writer takes room by moving `head`, fills it, and stores the size last.  The
 * reader stops at a size of zero and comes back later; it zeroes what it has read,
 * so that whatever record begins there next is seen as incomplete.  A record never
 * wraps: a filler takes the rest of the ring instead.
 *
 * What a stranger would get wrong:
 * - Words are copied by a loop that the compiler must not turn into memcpy().  Its first
 *   call may go through the loader to be bound, and writers run in signal handlers.
 * - A writer may never end: a filter that kills its thread, a debugger that stops it.  All
 *   that comes behind its record would be waited for in vain.  So one that is not complete
 *   for STUCK_NS makes the reader give the whole ring up for a new one, and count what it
 *   held as lost.  The old one stays mapped until no handler is at work (cpu_ring_close()).
 *
 * Why not a ring for each thread: a thousand mostly idle threads would each keep
 * one, and their memory would have to outlive them.
 *
 * Tests: tests/cpu/test_ring.c.
 */
#include <config.h>

#include "ring.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "pages.h"
#include "stack_table.h"
#include "unwind.h"
#include "unwind_window.h"

#define FILLER    0x80000000U /* in size: nothing but the rest of the ring */
#define STUCK_NS  CLOCK_NS_PER_S /* writers take microseconds, unless they get no processor */
#define RINGS_MAX 4           /* with those that were given up; then all is lost, and counted */

struct record {
	_Atomic uint32_t size; /* bytes; a multiple of 8; 0 until complete */
	uint32_t         slot;
	uint32_t         weight;
	uint32_t         labels;
	uint16_t         count;
	uint8_t          truncated, copy;
	uintptr_t        pcs[];
};

struct ring {
	char            *bytes;
	uint64_t         size;
	_Atomic uint64_t head, tail; /* only grow */
	_Atomic uint64_t taken;      /* weights of all records ... */
	uint64_t         told;       /* ... and of those that were delivered, or counted as lost */
	uint64_t         stuck_at;
	int64_t          stuck_since_ns; /* 0: not */
};

static struct ring            rings[RINGS_MAX];
static _Atomic(struct ring *) current; /* NULL: closed, or no ring is left */
static _Atomic uint64_t       lost;
static _Atomic uint64_t       lost_before; /* until the ring was closed last */

/* A new current one; false: there is no place or no memory for it. */
static bool
ring_begin(void)
{
	size_t       size = unwind_takes() ? CPU_RING_COPY_BYTES : CPU_RING_BYTES;
	struct ring *r = rings;
	void        *mem;

	while (r < rings + RINGS_MAX && r->bytes)
		r++;
	if (r == rings + RINGS_MAX)
		return false;
	mem = pages_map(size);
	if (!mem)
		return false;
	*r = (struct ring){ .bytes = mem, .size = size };
	atomic_store(&current, r);
	return true;
}

int
cpu_ring_open(void)
{
	if (rings[0].bytes)
		return 0; /* kept for a handler that did not end in time */
	atomic_store(&lost, 0);
	return ring_begin() ? 0 : -ENOMEM;
}

void
cpu_ring_close(void)
{
	atomic_fetch_add(&lost_before, cpu_ring_lost());
	atomic_store(&lost, 0);
	atomic_store(&current, NULL);
	for (struct ring *r = rings; r < rings + RINGS_MAX; r++) {
		void *bytes = r->bytes;

		r->bytes = NULL; /* first: a child may be forked in the midst of munmap() */
		pages_unmap(bytes, r->size);
	}
}

static struct record *
record_at(const struct ring *r, uint64_t position)
{
	return (struct record *)(r->bytes + position % r->size);
}

/* BEGIN SIGNAL CONTEXT */

bool
cpu_ring_add(const struct cpu_sample *s)
{
	return cpu_ring_add_copy(s, 0, 0);
}

bool
cpu_ring_add_copy(const struct cpu_sample *s, uintptr_t stack, size_t bytes)
{
	struct ring   *ring = atomic_load_explicit(&current, memory_order_acquire);
	uint64_t       head, filler;
	uint32_t       words = (uint32_t)(bytes / sizeof(uintptr_t));
	uint32_t       size = (uint32_t)(sizeof(struct record) + (s->count + words) * sizeof(uintptr_t));
	struct record *r;

	size = (size + 7) & ~7U;
	if (!ring)
		goto full;
	head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	do {
		filler = ring->size - head % ring->size;
		if (filler >= size)
			filler = 0;
		/* Below 0 where head is old: the exchange reads it again. */
		if ((int64_t)(head + filler + size - atomic_load_explicit(&ring->tail, memory_order_acquire)) > (int64_t)ring->size)
			goto full;
	} while (!atomic_compare_exchange_weak_explicit(&ring->head, &head, head + filler + size, memory_order_relaxed,
							memory_order_relaxed));
	atomic_fetch_add_explicit(&ring->taken, s->weight, memory_order_relaxed);
	if (filler)
		atomic_store_explicit(&record_at(ring, head)->size, FILLER | (uint32_t)filler, memory_order_release);
	r = record_at(ring, head + filler);
	r->slot = s->slot;
	r->weight = s->weight;
	r->labels = s->labels;
	r->count = (uint16_t)(s->count + words);
	r->truncated = s->truncated;
	r->copy = words > 0;
	unwind_words_copy(r->pcs, (uintptr_t)s->pcs, s->count);
	unwind_words_copy(r->pcs + s->count, stack, words);
	atomic_store_explicit(&r->size, size, memory_order_release);
	return true;
full:
	atomic_fetch_add_explicit(&lost, s->weight, memory_order_relaxed);
	return false;
}

/* END SIGNAL CONTEXT */

/* A record at the tail is not complete. */
static void
look_stuck(struct ring *r, uint64_t tail)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	if (r->stuck_since_ns == 0 || r->stuck_at != tail) {
		r->stuck_at = tail;
		r->stuck_since_ns = now;
	} else if (now - r->stuck_since_ns > STUCK_NS) {
		atomic_store(&current, NULL);
		ring_begin(); /* what r held is lost from now on: see cpu_ring_lost() */
	}
}

void
cpu_ring_drain(cpu_ring_fn *fn, void *arg)
{
	struct ring      *ring = atomic_load(&current);
	uint64_t          tail, end;
	struct cpu_sample s;
	struct record    *r;
	uint32_t          size;

	if (!ring)
		return;
	tail = atomic_load(&ring->tail);
	/* What comes meanwhile is for the next time: writers may be the faster ones. */
	end = atomic_load_explicit(&ring->head, memory_order_acquire);
	while (tail != end) {
		r = record_at(ring, tail);
		size = atomic_load_explicit(&r->size, memory_order_acquire);
		if (size == 0) {
			look_stuck(ring, tail);
			break;
		}
		if (!(size & FILLER)) {
			s.slot = r->slot;
			s.weight = r->weight;
			s.labels = r->labels;
			s.pcs = r->pcs;
			s.count = r->count;
			s.truncated = r->truncated;
			s.copy = r->copy;
			ring->told += s.weight;
			fn(arg, &s);
		}
		size &= ~FILLER;
		memset((void *)r, 0, size);
		tail += size;
		atomic_store_explicit(&ring->tail, tail, memory_order_release);
	}
}

int64_t
cpu_ring_holds_ns(uint64_t per_second)
{
	const size_t deepest = sizeof(struct record) + (unwind_takes() ? UNWIND_WORDS * sizeof(uintptr_t) + UNWIND_COPY_BYTES :
							     STACK_FRAMES_MAX * sizeof(uintptr_t));
	const size_t size = unwind_takes() ? CPU_RING_COPY_BYTES : CPU_RING_BYTES;

	/* One less, for the rest of the ring that no record fits into. */
	return (int64_t)((size / deepest - 1) * CLOCK_NS_PER_S / (per_second ? per_second : 1));
}

uint64_t
cpu_ring_used(void)
{
	const struct ring *r = atomic_load(&current);

	return r ? atomic_load(&r->head) - atomic_load(&r->tail) : 0;
}

uint64_t
cpu_ring_lost_ever(void)
{
	return atomic_load(&lost_before) + cpu_ring_lost();
}

uint64_t
cpu_ring_lost(void)
{
	uint64_t sum = atomic_load(&lost);

	for (const struct ring *r = rings; r < rings + RINGS_MAX; r++)
		if (r->bytes && r != atomic_load(&current))
			sum += atomic_load(&r->taken) - r->told;
	return sum;
}
