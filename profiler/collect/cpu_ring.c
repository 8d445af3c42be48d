/*
 * cpu_ring.c - many signal handlers write, one thread reads, nobody waits.
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
 * What a stranger would get wrong: words are copied by a loop that the compiler
 * must not turn into memcpy().  Its first call may go through the loader to be
 * bound, and writers run in signal handlers.
 *
 * Why not a ring for each thread: a thousand mostly idle threads would each keep
 * one, and their memory would have to outlive them.
 *
 * Tests: tests/test_cpu_ring.c.
 */
#include <config.h>

#include "cpu_ring.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "unwind_load.h"
#include "unwind_remote.h"

#define FILLER 0x80000000U /* in size: nothing but the rest of the ring */

struct record {
	_Atomic uint32_t size; /* bytes; a multiple of 8; 0 until complete */
	uint32_t         slot;
	uint32_t         weight;
	uint32_t         labels;
	uint16_t         count;
	uint8_t          truncated, copy;
	uintptr_t        pcs[];
};

static struct {
	char            *bytes;
	uint64_t         size;
	_Atomic uint64_t head, tail; /* only grow */
	_Atomic uint64_t lost;
} ring;

int
cpu_ring_open(void)
{
	size_t size = unwind_remote_used() ? CPU_RING_COPY_BYTES : CPU_RING_BYTES;
	void  *mem;

	if (ring.bytes)
		return 0; /* kept for a handler that did not end in time */
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return -ENOMEM;
	ring.bytes = mem;
	ring.size = size;
	atomic_store(&ring.head, 0);
	atomic_store(&ring.tail, 0);
	atomic_store(&ring.lost, 0);
	return 0;
}

void
cpu_ring_close(void)
{
	if (ring.bytes)
		munmap(ring.bytes, ring.size);
	ring.bytes = NULL;
}

static struct record *
record_at(uint64_t position)
{
	return (struct record *)(ring.bytes + position % ring.size);
}

/* BEGIN SIGNAL CONTEXT */

/* Not memcpy(), and no sanitizer's business: parts of a stack are nobody's. */
static void UNWIND_NO_SANITIZE
words_copy(uintptr_t *to, uintptr_t from, size_t words)
{
	size_t i;

	for (i = 0; i < words; i++) {
		to[i] = ((const volatile uintptr_t *)from)[i];
		__asm__ volatile("" ::: "memory");
	}
}

bool
cpu_ring_add(const struct cpu_sample *s)
{
	return cpu_ring_add_copy(s, 0, 0);
}

bool
cpu_ring_add_copy(const struct cpu_sample *s, uintptr_t stack, size_t bytes)
{
	uint64_t       head = atomic_load_explicit(&ring.head, memory_order_relaxed), filler;
	uint32_t       words = (uint32_t)(bytes / sizeof(uintptr_t));
	uint32_t       size = (uint32_t)(sizeof(struct record) + (s->count + words) * sizeof(uintptr_t));
	struct record *r;

	size = (size + 7) & ~7U;
	do {
		filler = ring.size - head % ring.size;
		if (filler >= size)
			filler = 0;
		if (head + filler + size - atomic_load_explicit(&ring.tail, memory_order_acquire) > ring.size) {
			atomic_fetch_add_explicit(&ring.lost, s->weight, memory_order_relaxed);
			return false;
		}
	} while (!atomic_compare_exchange_weak_explicit(&ring.head, &head, head + filler + size, memory_order_relaxed,
							memory_order_relaxed));
	if (filler)
		atomic_store_explicit(&record_at(head)->size, FILLER | (uint32_t)filler, memory_order_release);
	r = record_at(head + filler);
	r->slot = s->slot;
	r->weight = s->weight;
	r->labels = s->labels;
	r->count = (uint16_t)(s->count + words);
	r->truncated = s->truncated;
	r->copy = words > 0;
	words_copy(r->pcs, (uintptr_t)s->pcs, s->count);
	words_copy(r->pcs + s->count, stack, words);
	atomic_store_explicit(&r->size, size, memory_order_release);
	return true;
}

/* END SIGNAL CONTEXT */

void
cpu_ring_drain(cpu_ring_fn *fn, void *arg)
{
	uint64_t          tail = atomic_load(&ring.tail);
	struct cpu_sample s;
	struct record    *r;
	uint32_t          size;

	if (!ring.bytes)
		return;
	while (tail != atomic_load_explicit(&ring.head, memory_order_acquire)) {
		r = record_at(tail);
		size = atomic_load_explicit(&r->size, memory_order_acquire);
		if (size == 0)
			break;
		if (!(size & FILLER)) {
			s.slot = r->slot;
			s.weight = r->weight;
			s.labels = r->labels;
			s.pcs = r->pcs;
			s.count = r->count;
			s.truncated = r->truncated;
			s.copy = r->copy;
			fn(arg, &s);
		}
		size &= ~FILLER;
		memset((void *)r, 0, size);
		tail += size;
		atomic_store_explicit(&ring.tail, tail, memory_order_release);
	}
}

uint64_t
cpu_ring_used(void)
{
	return atomic_load(&ring.head) - atomic_load(&ring.tail);
}

uint64_t
cpu_ring_lost(void)
{
	return atomic_load(&ring.lost);
}
