/*
 * ring.c - many threads and handlers write, one thread reads, nobody waits.
 *
 * As cpu/ring.c: a writer moves `head`, fills its part, and stores the size last; the
 * reader stops where a size is missing.  Records are of a head, addresses and two texts.
 *
 * What a stranger would get wrong:
 * - Writers run in the daemon's threads, which may be cancelled asynchronously or leave
 *   by siglongjmp() from a handler in the middle of a record.  Its size is then never
 *   stored, and all that comes behind it would be waited for in vain.  So a record that
 *   is not complete for STUCK_NS makes the reader give the whole ring up for a new one.
 * - For the same reason, and as a writer may only have been stopped, a ring is unmapped only
 *   when nobody writes into it (events/writers.c), and is kept until then.
 * - Copies are made word by word: the first call of memcpy() may go through the loader.
 *
 * Why not the CPU sampler's ring: its records are a tenth of the size, and a busy trace
 * must not cost a CPU profile its samples.
 *
 * Tests: tests/trace/test_tracer.c, tests/trace/test_ring_writers.c.
 */
#include <config.h>

#include "ring.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "futex.h"
#include "pages.h"
#include "writers.h"

#define FILLER     0x80000000U /* in size: nothing but the rest of the ring */
#define STUCK_NS   CLOCK_NS_PER_S
#define QUIET_STEPS 100 /* of a millisecond: writers take microseconds */

struct record {
	_Atomic uint32_t size; /* bytes, a multiple of 8; 0 until complete */
	uint16_t         count, text_size;
	uint64_t         time_ns, value, parent;
	int32_t          tid, other;
	uint8_t          type, reason, flags, name_size;
	uint16_t         cpu;
	char             rest[]; /* of the pcs, the name, a NUL, the text, a NUL */
};

#define HEAD_BYTES ((offsetof(struct record, rest) + 7) / 8 * 8)

struct ring {
	_Atomic uint64_t head, tail; /* only grow */
	uint64_t         stuck_at;
	int64_t          stuck_since_ns; /* 0: not */
	_Alignas(64) char bytes[EVENTS_RING_BYTES];
};

static struct ring *_Atomic current; /* NULL: closed */
static _Atomic bool         wanted;
static struct ring         *kept[EVENTS_RINGS_MAX]; /* in which somebody may still write */
static unsigned             rings; /* with the current one */
static _Atomic uint64_t     lost;
static _Atomic uint32_t     bell; /* futex */

/* BEGIN SIGNAL CONTEXT */

int64_t
trace_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static struct record *
record_at(struct ring *r, uint64_t position)
{
	return (struct record *)(r->bytes + position % EVENTS_RING_BYTES);
}

static unsigned
text_length(const char *text, unsigned max)
{
	unsigned n = 0;

	while (text && n < max && text[n])
		n++;
	return n;
}

static char *
bytes_copy(char *to, const char *from, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		((volatile char *)to)[i] = from[i];
	to[n] = '\0';
	return to + n + 1;
}

/* The place of `size` bytes, or NULL. */
static struct record *
claim(struct ring *r, uint32_t size)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed), filler;
	int64_t  used;

	do {
		filler = EVENTS_RING_BYTES - head % EVENTS_RING_BYTES;
		if (filler >= size)
			filler = 0;
		/* Below 0 where head is old: the exchange reads it again. */
		used = (int64_t)(head + filler + size - atomic_load_explicit(&r->tail, memory_order_acquire));
		if (used > (int64_t)EVENTS_RING_BYTES)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&r->head, &head, head + filler + size, memory_order_relaxed,
		memory_order_relaxed));
	if (filler)
		atomic_store_explicit(&record_at(r, head)->size, FILLER | (uint32_t)filler, memory_order_release);
	if (used > (int64_t)EVENTS_RING_BYTES / 2 && used - size <= (int64_t)EVENTS_RING_BYTES / 2)
		events_ring_ring();
	return record_at(r, head + filler);
}

static bool
write_event(struct ring *ring, const struct trace_event *e)
{
	unsigned       name = text_length(e->name, TRACE_EVENT_NAME_MAX);
	unsigned       text = text_length(e->text, TRACE_EVENT_TEXT_MAX);
	uint32_t       size = (uint32_t)(HEAD_BYTES + e->count * sizeof(uintptr_t) + name + text + 2 + 7) & ~7U;
	struct record *r = claim(ring, size);
	uintptr_t     *pcs;
	char          *at;

	if (!r) {
		atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
		return false;
	}
	r->time_ns = e->time_ns;
	r->value = e->value;
	r->parent = e->parent;
	r->tid = e->tid;
	r->other = e->other;
	r->type = e->type;
	r->reason = e->reason;
	r->flags = e->flags;
	r->cpu = e->cpu;
	r->count = (uint16_t)e->count;
	r->name_size = (uint8_t)name;
	r->text_size = (uint16_t)text;
	pcs = (uintptr_t *)((char *)r + HEAD_BYTES);
	for (unsigned i = 0; i < e->count; i++)
		((volatile uintptr_t *)pcs)[i] = e->pcs[i];
	at = bytes_copy((char *)(pcs + e->count), e->name, name);
	bytes_copy(at, e->text, text);
	atomic_store_explicit(&r->size, size, memory_order_release);
	return true;
}

void
events_ring_want(bool on)
{
	atomic_store(&wanted, on);
}

bool
events_ring_is_wanted(void)
{
	return atomic_load_explicit(&wanted, memory_order_relaxed);
}

bool
events_ring_add(const struct trace_event *e)
{
	struct trace_writer *w;
	struct ring         *r = atomic_load(&current), *named;
	bool                 written;

	if (!r)
		return false;
	w = events_writers_enter();
	if (!w) {
		atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
		return false;
	}
	do {
		named = r;
		atomic_store(&w->ring, named);
		r = atomic_load(&current);
	} while (r != named);
	written = r && write_event(r, e);
	events_writers_leave(w);
	return written;
}

void
events_ring_ring(void)
{
	atomic_store(&bell, 1);
	futex_wake(&bell, 1);
}

/* END SIGNAL CONTEXT */

void
events_ring_sleep(int64_t ns)
{
	futex_wait(&bell, 0, ns);
	atomic_store(&bell, 0);
}

/* It is the current one no more, or is about to be. */
static void
ring_keep(struct ring *r)
{
	for (unsigned i = 0; i < EVENTS_RINGS_MAX; i++)
		if (kept[i] == r)
			return;
	for (unsigned i = 0; i < EVENTS_RINGS_MAX; i++) {
		if (kept[i])
			continue;
		kept[i] = r;
		return;
	}
}

/* Of those that were kept: without a writer by now. */
static void
kept_free(void)
{
	events_writers_sweep();
	for (unsigned i = 0; i < EVENTS_RINGS_MAX; i++) {
		struct ring *r = kept[i];

		if (!r || events_writers_in(r))
			continue;
		kept[i] = NULL; /* first: a child may be forked in the midst of munmap() */
		rings--;
		pages_unmap(r, sizeof(*r));
	}
}

static struct ring *
ring_new(void)
{
	void *mem;

	kept_free();
	if (rings >= EVENTS_RINGS_MAX)
		return NULL;
	mem = pages_map(sizeof(struct ring));
	if (!mem)
		return NULL;
	rings++;
	return mem;
}

int
events_ring_open(void)
{
	struct ring *r = ring_new();

	if (!r)
		return rings >= EVENTS_RINGS_MAX ? -EBUSY : -ENOMEM;
	atomic_store(&lost, 0);
	events_writers_forget();
	trace_tid(); /* binds what is bound lazily, outside of handlers */
	atomic_store(&current, r);
	return 0;
}

void
events_ring_close(void)
{
	const struct timespec step = { 0, 1000000 };
	struct ring          *r = atomic_load(&current);

	if (!r)
		return;
	ring_keep(r); /* first: a child that is forked here finds it */
	atomic_store(&current, NULL);
	kept_free();
	for (int i = 0; i < QUIET_STEPS && events_writers_in(r); i++) {
		nanosleep(&step, NULL);
		kept_free();
	}
}

void
events_ring_forked(void)
{
	struct ring *r = atomic_exchange(&current, NULL);

	if (r)
		ring_keep(r); /* who forked may be a handler that interrupts a writer */
	atomic_store(&bell, 0);
	events_writers_forget();
}

static void
deliver(const struct record *r, events_ring_fn *fn, void *arg)
{
	const uintptr_t   *pcs = (const uintptr_t *)((const char *)r + HEAD_BYTES);
	const char        *name = (const char *)(pcs + r->count);
	struct trace_event e = { .time_ns = r->time_ns, .value = r->value, .parent = r->parent, .tid = r->tid,
		.other = r->other, .type = r->type, .reason = r->reason, .flags = r->flags, .cpu = r->cpu,
		.count = r->count, .pcs = pcs, .name = name, .name_size = r->name_size,
		.text = name + r->name_size + 1, .text_size = r->text_size };

	fn(arg, &e);
}

/* Nothing comes behind a record that is never completed: a new ring for what follows. */
static void
look_stuck(struct ring *r, uint64_t tail)
{
	int64_t      now = trace_now_ns();
	struct ring *fresh;

	if (r->stuck_since_ns == 0 || r->stuck_at != tail) {
		r->stuck_at = tail;
		r->stuck_since_ns = now;
		return;
	}
	if (now - r->stuck_since_ns < STUCK_NS)
		return;
	r->stuck_since_ns = now; /* where there is no other, one is looked for again in a while */
	fresh = ring_new();
	if (!fresh)
		return;
	atomic_fetch_add(&lost, 1 + (atomic_load(&r->head) - tail) / (2 * HEAD_BYTES)); /* about so many */
	atomic_store(&current, fresh);
	ring_keep(r);
}

void
events_ring_drain(events_ring_fn *fn, void *arg)
{
	struct ring   *ring = atomic_load(&current);
	struct record *r;
	uint64_t       tail, end;
	uint32_t       size;

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
			return;
		}
		if (!(size & FILLER))
			deliver(r, fn, arg);
		size &= ~FILLER;
		memset((void *)r, 0, size);
		tail += size;
		atomic_store_explicit(&ring->tail, tail, memory_order_release);
	}
	ring->stuck_since_ns = 0;
}

uint64_t
events_ring_lost(void)
{
	return atomic_load(&lost);
}
