/*
 * slots.c - a slot for each thread: moments on its clock, and which of them are told.
 *
 * Each thread has a grid of moments on its own CPU clock, first_due + n * period.
 * First phases follow the golden ratio, which spreads any number of threads
 * evenly; with equal phases short threads would never be seen at all.  How many
 * moments have passed is known at any time, so what the signals have not told
 * (yet) can be told by arithmetic: at a thread's end, and for threads that block
 * the signal.
 *
 *     slot    in chunks that never move, since handlers read them by number
 *     bucket  of thread ids, to find a slot by its thread
 *     walk    through all threads, by cpu/scan.c: its number tells which slots it has seen
 *
 * The timers that send the signals are cpu/timers.c's subject.
 *
 * What a stranger would get wrong: slots outlive the timers, for a handler that got no
 * processor for long may still look at its own (cpu_slots_free()).
 *
 * Tests: tests/cpu/test_cpu.c.
 */
#include <config.h>

#include "slots.h"

#include <errno.h>
#include <stddef.h>

#include "pages.h"

#define CHUNK_SLOTS   1024 /* 64 KiB */
#define CHUNKS_MAX    64   /* 65536 threads: beyond, a timer each is no way to look */
#define BUCKETS       4096
#define NONE          0    /* slot 0 is never given out */
#define GOLDEN_RATIO  0.6180339887498949

static struct {
	_Atomic(struct cpu_slot *) chunks[CHUNKS_MAX];
	uint32_t *buckets;
	uint32_t  used;      /* slots ever given out, and slot 0 */
	uint32_t  free_list;
	uint32_t  walk;      /* the last one's number */
	int64_t   period_ns; /* below a second */
	double    phase;
} slots;

/* BEGIN SIGNAL CONTEXT */

struct cpu_slot *
cpu_slot_at(uint32_t i)
{
	struct cpu_slot *chunk;

	if (i == NONE || i >= CHUNK_SLOTS * CHUNKS_MAX)
		return NULL;
	chunk = atomic_load_explicit(&slots.chunks[i / CHUNK_SLOTS], memory_order_acquire);
	return chunk ? &chunk[i % CHUNK_SLOTS] : NULL;
}

bool
cpu_slot_expired(const siginfo_t *info, uint32_t *ret_slot, uint32_t *ret_weight)
{
	uint64_t         value = (uintptr_t)info->si_value.sival_ptr;
	struct cpu_slot *s;
	uint32_t         weight;

	if (info->si_code != SI_TIMER || value >> 32 != CPU_SLOT_COOKIE)
		return false;
	s = cpu_slot_at((uint32_t)value);
	if (!s || atomic_load_explicit(&s->timer, memory_order_acquire) != info->si_timerid)
		return false;
	weight = 1 + (info->si_overrun > 0 ? (uint32_t)info->si_overrun : 0);
	weight += atomic_exchange_explicit(&s->owed, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->delivered, weight, memory_order_relaxed);
	*ret_slot = (uint32_t)value;
	*ret_weight = weight;
	return true;
}

/* END SIGNAL CONTEXT */

/* ---- by number and by thread ---- */

uint32_t
cpu_slots_end(void)
{
	return slots.used;
}

uint32_t
cpu_slots_walk(void)
{
	return slots.walk;
}

void
cpu_slots_walk_begin(void)
{
	slots.walk++;
}

static uint32_t *
bucket_of(pid_t tid)
{
	return &slots.buckets[(unsigned)tid % BUCKETS];
}

uint32_t
cpu_slot_find(pid_t tid)
{
	uint32_t i = *bucket_of(tid);

	while (i && cpu_slot_at(i)->tid != tid)
		i = cpu_slot_at(i)->next;
	return i;
}

pid_t
cpu_slot_tid(uint32_t i)
{
	const struct cpu_slot *s = cpu_slot_at(i);

	return s ? s->tid : 0;
}

/* Off the list, or one that was never given out. */
static uint32_t
slot_unused(void)
{
	uint32_t i = slots.free_list;
	void    *chunk;

	if (i) {
		slots.free_list = cpu_slot_at(i)->next;
		return i;
	}
	i = slots.used;
	if (i >= CHUNK_SLOTS * CHUNKS_MAX)
		return NONE;
	if (!atomic_load(&slots.chunks[i / CHUNK_SLOTS])) {
		chunk = pages_map(CHUNK_SLOTS * sizeof(struct cpu_slot));
		if (!chunk)
			return NONE;
		atomic_store_explicit(&slots.chunks[i / CHUNK_SLOTS], chunk, memory_order_release);
	}
	slots.used++;
	return i;
}

uint32_t
cpu_slot_take(pid_t tid)
{
	uint32_t         i = slot_unused();
	struct cpu_slot *s = cpu_slot_at(i);

	if (!s)
		return NONE;
	s->tid = tid;
	s->seen = slots.walk;
	atomic_store(&s->timer, CPU_SLOT_IDLE);
	s->next = *bucket_of(tid);
	*bucket_of(tid) = i;
	return i;
}

void
cpu_slot_give_back(uint32_t i)
{
	struct cpu_slot *s = cpu_slot_at(i);
	uint32_t        *link = bucket_of(s->tid);

	while (*link != i)
		link = &cpu_slot_at(*link)->next;
	*link = s->next;
	s->tid = 0;
	s->next = slots.free_list;
	slots.free_list = i;
}

/* ---- the grid ---- */

int64_t
cpu_slots_period_ns(void)
{
	return slots.period_ns;
}

void
cpu_slot_grid(struct cpu_slot *s, int64_t cpu_ns, bool born)
{
	int64_t phase;

	slots.phase += GOLDEN_RATIO;
	slots.phase -= (double)(int64_t)slots.phase;
	phase = 1 + (int64_t)(slots.phase * (double)(slots.period_ns - 1));
	s->armed_ns = cpu_ns;
	s->told_ns = born ? 0 : cpu_ns;
	s->before = 0;
	s->first_due_ns = phase + (born ? 0 : cpu_ns);
	if (s->first_due_ns <= cpu_ns) {
		s->before = (uint32_t)((cpu_ns - s->first_due_ns) / slots.period_ns) + 1;
		s->first_due_ns += (int64_t)s->before * slots.period_ns;
	}
	atomic_store(&s->owed, s->before);
	atomic_store(&s->delivered, 0);
	s->charged = 0;
	s->shut = false;
}

/* Periods that have passed on the thread's grid, before it was armed included. */
static uint64_t
slot_due(const struct cpu_slot *s, int64_t cpu_ns)
{
	uint64_t due = s->before;

	if (cpu_ns >= s->first_due_ns)
		due += (uint64_t)((cpu_ns - s->first_due_ns) / slots.period_ns) + 1;
	return due;
}

uint64_t
cpu_slot_missing(const struct cpu_slot *s, int64_t cpu_ns)
{
	uint64_t due = slot_due(s, cpu_ns), told = atomic_load(&s->delivered) + s->charged;

	return due > told ? due - told : 0;
}

uint32_t
cpu_slot_uncharge(uint32_t i, uint32_t weight)
{
	struct cpu_slot *s = cpu_slot_at(i);
	uint64_t         told;

	if (!s || s->charged == 0)
		return weight;
	told = s->charged < weight ? s->charged : weight;
	s->charged -= told;
	return weight - (uint32_t)told;
}

/* ---- life ---- */

int
cpu_slots_open(int64_t period_ns)
{
	slots.period_ns = period_ns;
	if (slots.buckets)
		return 0; /* kept for a handler that did not end in time */
	slots.buckets = pages_map(BUCKETS * sizeof(*slots.buckets));
	if (!slots.buckets)
		return -ENOMEM;
	slots.used = 1;
	slots.free_list = NONE;
	return 0;
}

void
cpu_slots_free(void)
{
	void *chunk, *buckets;

	for (unsigned i = 0; i < CHUNKS_MAX; i++) {
		chunk = atomic_exchange(&slots.chunks[i], NULL);
		pages_unmap(chunk, CHUNK_SLOTS * sizeof(struct cpu_slot));
	}
	buckets = slots.buckets;
	slots.buckets = NULL; /* first: a child may be forked in the midst of munmap() */
	slots.used = 0;
	pages_unmap(buckets, BUCKETS * sizeof(*slots.buckets));
}
