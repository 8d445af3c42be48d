/*
 * stack_table.c - every stack once, with counted references.
 *
 *     buckets[hash] --> entry --> entry ...       looked at under the lock only
 *     dead --> entry --> ...                      last reference gone, not freed yet
 *
 * An entry is a header and its pcs; its id is its place (stack_memory.c), so finding
 * the pcs of an id takes no lock and no index.
 *
 * What a stranger would get wrong:
 * - Adding is called from malloc; where the lock cannot be had (stack_lock.c) the
 *   answer is [lost samples], where there is no memory [stack table full].
 * - Giving a reference back never waits: it comes from free().  An entry whose
 *   count falls to zero is pushed on `dead`, and whoever next holds the lock takes
 *   it out, unless an add has found it meanwhile and raised the count again.
 * - Memory is given back to the kernel only when no entry lives at all.
 *
 * Why not a lock for each shard: the heap adds one stack for each 512 KiB
 * allocated and CPU stacks come from one thread; a hit holds the lock for well
 * under a microsecond.
 *
 * Tests: tests/model/test_stack_table.c.
 */
#include <config.h>

#include "stack_table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "fork.h"
#include "generations.h"
#include "stack_lock.h"
#include "stack_memory.h"

/* One bucket for so many bytes of limit: about one entry of 25 frames. */
#define BYTES_PER_BUCKET  256
#define BUCKETS_MIN       1024
/* However high the limit: 1 MiB.  At a million stacks a look-up passes four of them. */
#define BUCKETS_MAX       ((size_t)1 << 18)

#define ENTRY_DEAD_LISTED 1U
#define ENTRY_REFERENCE   2U

static const struct {
	uintptr_t   pc;
	const char *name;
} pseudo[STACK_PSEUDO_MAX] = {
	[STACK_PSEUDO_LOST] = { STACK_PSEUDO_LOST, "[lost samples]" },
	[STACK_PSEUDO_FULL] = { STACK_PSEUDO_FULL, "[stack table full]" },
	[STACK_PSEUDO_TRUNCATED] = { STACK_PSEUDO_TRUNCATED, "[truncated]" },
	[STACK_PSEUDO_SILENT] = { STACK_PSEUDO_SILENT, "[no answer]" },
	[STACK_PSEUDO_RUNNING] = { STACK_PSEUDO_RUNNING, "[running]" },
	[STACK_PSEUDO_ENDED] = { STACK_PSEUDO_ENDED, "[end of thread]" },
};

static struct {
	_Atomic uint32_t dead;
	_Atomic size_t   labels_bytes;
	/* The rest is read and written under the lock. */
	uint32_t        *buckets;
	size_t           bucket_count; /* a power of two */
	size_t           live;
	bool             broken; /* a child of a fork that waited in vain */
} table;

/* ---- buckets ---- */

static uint32_t
pcs_hash(const uintptr_t *pcs, unsigned count)
{
	uint64_t h = count;
	unsigned i;

	for (i = 0; i < count; i++) {
		h = (h ^ pcs[i]) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 29;
	}
	return (uint32_t)(h ^ h >> 32);
}

static size_t
bucket_count_for(size_t limit)
{
	size_t count = BUCKETS_MIN;

	while (count < BUCKETS_MAX && count * BYTES_PER_BUCKET < limit)
		count *= 2;
	return count;
}

/*
 * The buckets for the limit of now; entries move over.  Without memory for the
 * new ones the old ones stay, only slower.
 */
static bool
buckets_fit(void)
{
	size_t              count = bucket_count_for(stack_memory_limit()), i;
	uint32_t           *buckets, id, next;
	struct stack_entry *e;

	if (table.buckets && count == table.bucket_count)
		return true;
	buckets = stack_memory_map(count * sizeof(*buckets));
	if (!buckets)
		return table.buckets != NULL;
	for (i = 0; table.buckets && i < table.bucket_count; i++) {
		for (id = table.buckets[i]; id; id = next) {
			e = stack_memory_at(id);
			next = e->next;
			e->next = buckets[e->hash & (count - 1)];
			buckets[e->hash & (count - 1)] = id;
		}
	}
	if (table.buckets)
		stack_memory_unmap(table.buckets, table.bucket_count * sizeof(*buckets));
	table.buckets = buckets;
	table.bucket_count = count;
	return true;
}

static void
bucket_remove(uint32_t id)
{
	struct stack_entry *e = stack_memory_at(id);
	uint32_t           *link = &table.buckets[e->hash & (table.bucket_count - 1)];

	while (*link != id)
		link = &stack_memory_at(*link)->next;
	*link = e->next;
}

/* ---- the dead ---- */

static void
dead_push(uint32_t id)
{
	struct stack_entry *e = stack_memory_at(id);
	uint32_t            head = atomic_load(&table.dead);

	do
		e->dead_next = head;
	while (!atomic_compare_exchange_weak(&table.dead, &head, id));
}

/* Nothing lives: all memory goes back, and the table is as it was at the start. */
static void
table_empty(void)
{
	stack_memory_reset();
	stack_memory_unmap(table.buckets, table.bucket_count * sizeof(*table.buckets));
	table.buckets = NULL;
	table.bucket_count = 0;
}

/* Under the lock: frees what is still dead. */
static void
dead_reap(void)
{
	uint32_t            id, next, state;
	bool                freed = false;
	struct stack_entry *e;

	if (table.broken)
		return;
	for (id = atomic_exchange(&table.dead, 0); id; id = next) {
		e = stack_memory_at(id);
		next = e->dead_next;
		state = atomic_load(&e->state);
		/* Alive again: from now on the next last reference lists it anew. */
		while (state >= ENTRY_REFERENCE &&
		       !atomic_compare_exchange_weak(&e->state, &state, state & ~ENTRY_DEAD_LISTED))
			;
		if (state >= ENTRY_REFERENCE)
			continue;
		bucket_remove(id);
		if (e->labels)
			atomic_fetch_sub(&table.labels_bytes, stack_memory_entry_bytes(e->count));
		stack_memory_give(id);
		table.live--;
		freed = true;
	}
	if (freed && table.live == 0)
		table_empty();
}

/* Releases the lock; the dead of a moment ago are seen by someone in any case. */
static void
lock_release_reaping(void)
{
	for (;;) {
		dead_reap();
		stack_lock_release();
		if (atomic_load(&table.dead) == 0 || table.broken || !stack_lock_take(0))
			return;
	}
}

/* ---- fork ---- */

/* A thread that forks from a handler inside an add holds the lock already, and goes
 * on with that add in both processes: nothing to do then. */
static void
fork_parent(void)
{
	if (stack_lock_fork_holds())
		lock_release_reaping();
}

static void
fork_child(void)
{
	/* Another thread was in the middle of it and is not here to end it. */
	if (!stack_lock_fork_child())
		table.broken = true;
}

FORK_SLOT(FORK_STACKS, stack_lock_fork_prepare, fork_parent, fork_child);

/* ---- the doors ---- */

const char *
stack_pseudo_name(uintptr_t pc)
{
	return pc < STACK_PSEUDO_MAX ? pseudo[pc].name : NULL;
}

void
stack_table_set_limit(size_t limit_bytes)
{
	stack_memory_set_limit(limit_bytes);
	if (!stack_lock_take(STACK_LOCK_WAIT_NS))
		return;
	if (table.buckets)
		buckets_fit();
	lock_release_reaping();
}

static uint32_t
entry_find(uint32_t hash, const uintptr_t *pcs, unsigned count)
{
	struct stack_entry *e;
	uint32_t            id;

	for (id = table.buckets[hash & (table.bucket_count - 1)]; id; id = e->next) {
		e = stack_memory_at(id);
		if (e->hash == hash && e->count == count && memcmp(e->pcs, pcs, count * sizeof(*pcs)) == 0)
			return id;
	}
	return 0;
}

static uint32_t
entry_add(uint32_t hash, const uintptr_t *pcs, unsigned count, bool labels)
{
	uint32_t            id = stack_memory_take(count), *bucket;
	struct stack_entry *e;

	if (!id)
		return 0;
	e = stack_memory_at(id);
	e->hash = hash;
	e->count = count;
	e->labels = labels;
	e->kept = 0;
	if (labels)
		atomic_fetch_add(&table.labels_bytes, stack_memory_entry_bytes(count));
	memcpy(e->pcs, pcs, count * sizeof(*pcs));
	atomic_store(&e->state, ENTRY_REFERENCE);
	bucket = &table.buckets[hash & (table.bucket_count - 1)];
	e->next = *bucket;
	*bucket = id;
	table.live++;
	return id;
}

/* Under the lock.  labels_max: bytes that all label sets may take, where this is one; 0: it is a stack. */
static uint32_t
intern(const uintptr_t *pcs, unsigned count, size_t labels_max)
{
	uint32_t hash = pcs_hash(pcs, count), id;

	if (table.broken || (!table.buckets && !buckets_fit()))
		return 0;
	id = entry_find(hash, pcs, count);
	if (id)
		atomic_fetch_add(&stack_memory_at(id)->state, ENTRY_REFERENCE);
	else if (!labels_max || table.labels_bytes + stack_memory_entry_bytes(count) <= labels_max)
		id = entry_add(hash, pcs, count, labels_max > 0);
	return id;
}

/* Apart, for its room on the stack: it is rarely needed, and a hook has little. */
static uint32_t __attribute__((noinline))
intern_tagged(const uintptr_t *pcs, const uint16_t *tags, unsigned count)
{
	uintptr_t tagged[STACK_FRAMES_MAX];

	for (unsigned i = 0; i < count; i++)
		tagged[i] = pcs[i] | (uintptr_t)tags[i] << GENERATIONS_PC_BITS;
	return intern(tagged, count, 0);
}

uint32_t
stack_table_add(const uintptr_t *pcs, unsigned count)
{
	return stack_table_add_within(pcs, count, STACK_LOCK_WAIT_NS);
}

uint32_t
stack_table_add_within(const uintptr_t *pcs, unsigned count, long wait_ns)
{
	uint16_t tags[STACK_FRAMES_MAX];
	uint32_t id;

	if (count == 0)
		return STACK_PSEUDO_TRUNCATED;
	if (count > STACK_FRAMES_MAX)
		count = STACK_FRAMES_MAX;
	if (count == 1 && pcs[0] < STACK_PSEUDO_MAX && pcs[0] > 0)
		return (uint32_t)pcs[0];
	if (!stack_lock_take(wait_ns))
		return STACK_PSEUDO_LOST;
	if (generations_tag(pcs, count, tags))
		id = intern_tagged(pcs, tags, count);
	else
		id = intern(pcs, count, 0);
	lock_release_reaping();
	return id ? id : STACK_PSEUDO_FULL;
}

uint32_t
stack_table_add_labels(const uintptr_t *words, unsigned count, size_t bytes_max)
{
	uint32_t id;

	if (count == 0 || count > STACK_FRAMES_MAX || bytes_max == 0)
		return 0;
	if (!stack_lock_take(STACK_LOCK_PATIENT_NS))
		return STACK_PSEUDO_LOST;
	id = intern(words, count, bytes_max);
	lock_release_reaping();
	return id;
}

size_t
stack_table_labels_bytes(void)
{
	return atomic_load(&table.labels_bytes);
}

size_t
stack_table_limit(void)
{
	return stack_memory_limit();
}

bool
stack_table_exclusively(void (*fn)(void *arg), void *arg)
{
	if (!stack_lock_take(STACK_LOCK_WAIT_NS))
		return false;
	fn(arg);
	lock_release_reaping();
	return true;
}

void
stack_table_ref(uint32_t id)
{
	if (id >= STACK_PSEUDO_MAX)
		atomic_fetch_add(&stack_memory_at(id)->state, ENTRY_REFERENCE);
}

void
stack_table_unref(uint32_t id)
{
	uint32_t            state, want;
	struct stack_entry *e;

	if (id < STACK_PSEUDO_MAX)
		return;
	e = stack_memory_at(id);
	state = atomic_load(&e->state);
	do {
		want = state - ENTRY_REFERENCE;
		if (want == 0)
			want = ENTRY_DEAD_LISTED;
	} while (!atomic_compare_exchange_weak(&e->state, &state, want));
	if (want != ENTRY_DEAD_LISTED || state & ENTRY_DEAD_LISTED)
		return;
	dead_push(id);
	if (stack_lock_take(0))
		lock_release_reaping();
}

bool
stack_table_keep(uint32_t id, size_t *kept, size_t max)
{
	struct stack_entry *e;
	size_t              bytes;

	if (id < STACK_PSEUDO_MAX)
		return true;
	e = stack_memory_at(id);
	bytes = stack_memory_entry_bytes(e->count);
	if (!e->kept && *kept + bytes > max)
		return false;
	*kept += e->kept ? 0 : bytes;
	e->kept = 1;
	return true;
}

const uintptr_t *
stack_table_pcs(uint32_t id, unsigned *ret_count)
{
	struct stack_entry *e;

	if (id < STACK_PSEUDO_MAX) {
		*ret_count = id > 0;
		return &pseudo[id].pc;
	}
	e = stack_memory_at(id);
	*ret_count = e->count;
	return e->pcs;
}

size_t
stack_table_bytes(void)
{
	return stack_memory_bytes();
}
