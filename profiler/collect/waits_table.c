/*
 * waits_table.c - waiters by the address of their lock.
 *
 *     masks[hash of address] -> 64 bits, one for each waiter ->  { lock, since }
 *
 * A bit is claimed by one atomic operation; what stands beside it is valid while `lock`
 * is not 0.  The masks are in the hooks object, where an unlock reads one of them.
 *
 * What a stranger would get wrong:
 * - Each nanosecond of waiting is charged to one unlock only: whoever charges moves
 *   `since` to now.  So the sum of all charges never exceeds the sum of the waits,
 *   however many unlocks a waiter had to see.
 * - With more than 64 waiters in a bucket the others are charged as many times the mean
 *   of those who are in it, as Go does for all but the first and the last.
 * - A waiter that the kernel wakes late is charged to the next unlock at most.
 * - Who is gone without a word (cancelled asynchronously in the middle of a publish, or by
 *   a siglongjmp() that comes from another stack) would be charged for ever.  So whoever is
 *   found waiting for long is asked for by its id, and withdrawn if that thread has ended.
 * - An unlock looks at one word first, which says whether anybody may wait for any lock:
 *   who publishes sets it if it is not set, and it is taken back seldom, and only when
 *   nobody is found (waits_table_rest()).  A count of waiters would be written by all
 *   processors that contend, and read by all that do not.
 *
 * Why not a slot for each thread: the holder would have to look at all of them.
 * Tests: tests/test_waits.c, tests/test_waits_guest.c, tests/test_waits_left.c.
 */
#include <config.h>

#include "waits_table.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hooks.h"

#define PER_BUCKET 64
#define REST_NS    10000000LL /* at most so often is looked whether all are gone */

struct waiter {
	_Atomic uintptr_t lock; /* 0: not there, or not yet */
	_Atomic int64_t   since_ns;
	_Atomic int64_t   came_ns; /* since it waits; nobody moves that */
	_Atomic int64_t   seen_ns; /* its thread was there */
	_Atomic int32_t   tid;
};

typedef _Atomic uint64_t mask;

static struct waiter   *_Atomic waiters; /* [HOOKS_WAITING][PER_BUCKET] */
static mask            *_Atomic masks;
static _Atomic int32_t  crowds[HOOKS_WAITING]; /* waiting now, without a place */
static _Atomic uint64_t crowded;
static _Atomic int64_t  rested_ns;

static void
any_set(uint32_t state)
{
	__atomic_store_n(&component_hooks.wait_any, state, __ATOMIC_SEQ_CST);
}

static bool
anybody(void)
{
	const mask *m = atomic_load(&masks);

	for (unsigned i = 0; m && i < HOOKS_WAITING; i++)
		if (atomic_load(&m[i]))
			return true;
	return false;
}

/* Who publishes meanwhile has its bit before it looks at the word: it is seen here, or
 * sees that the word is to be set. */
static void
any_find(void)
{
	any_set(HOOKS_OFF);
	if (anybody())
		any_set(HOOKS_ON);
}

int
waits_table_open(uint64_t *hooks_masks)
{
	struct waiter *fresh, *none = NULL;
	size_t         size = sizeof(*fresh) * HOOKS_WAITING * PER_BUCKET;

	if (atomic_load(&masks))
		return 0;
	fresh = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fresh == MAP_FAILED)
		return -ENOMEM;
	if (!atomic_compare_exchange_strong(&waiters, &none, fresh))
		munmap(fresh, size);
	atomic_store(&masks, (mask *)hooks_masks);
	return 0;
}

struct waits_place
waits_table_publish(uintptr_t lock, int64_t now_ns, int32_t tid)
{
	struct waits_place place = { (uint32_t)HOOKS_WAITING_BUCKET(lock), -1 };
	mask              *m = &atomic_load_explicit(&masks, memory_order_relaxed)[place.bucket];
	struct waiter     *w;
	uint64_t           taken = atomic_load(m), bit;

	do {
		if (~taken == 0) {
			atomic_fetch_add(&crowds[place.bucket], 1);
			atomic_fetch_add(&crowded, 1);
			return place;
		}
		bit = ~taken & (taken + 1); /* the lowest that is free */
	} while (!atomic_compare_exchange_weak(m, &taken, taken | bit));
	place.bit = __builtin_ctzll(bit);
	w = &atomic_load(&waiters)[place.bucket * PER_BUCKET + (unsigned)place.bit];
	atomic_store_explicit(&w->since_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&w->came_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&w->seen_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&w->tid, tid, memory_order_relaxed);
	atomic_store(&w->lock, lock);
	if (__atomic_load_n(&component_hooks.wait_any, __ATOMIC_SEQ_CST) == HOOKS_OFF)
		any_set(HOOKS_ON);
	return place;
}

void
waits_table_withdraw(struct waits_place place)
{
	if (place.bit < 0) {
		atomic_fetch_sub(&crowds[place.bucket], 1);
		return;
	}
	atomic_store(&atomic_load(&waiters)[place.bucket * PER_BUCKET + (unsigned)place.bit].lock, 0);
	atomic_fetch_and(&atomic_load(&masks)[place.bucket], ~((uint64_t)1 << place.bit));
}

void
waits_table_rest(int64_t now_ns)
{
	int64_t last = atomic_load(&rested_ns);

	if (__atomic_load_n(&component_hooks.wait_any, __ATOMIC_RELAXED) == HOOKS_OFF || now_ns - last < REST_NS ||
		!atomic_compare_exchange_strong(&rested_ns, &last, now_ns))
		return;
	if (!anybody())
		any_find();
}

void
waits_table_watch(bool on)
{
	if (on)
		any_find();
	else
		any_set(HOOKS_OFF);
}

/* One that has waited for long: has its thread ended?  Then it is withdrawn. */
static bool
is_gone(struct waiter *w, uintptr_t lock, struct waits_place place, int64_t now)
{
	int64_t seen = atomic_load(&w->seen_ns);

	if (now - seen < WAITS_TABLE_LIFE_NS || !atomic_compare_exchange_strong(&w->seen_ns, &seen, now))
		return false;
	if (syscall(SYS_tgkill, getpid(), atomic_load(&w->tid), 0) == 0 || errno != ESRCH)
		return false;
	if (atomic_compare_exchange_strong(&w->lock, &lock, 0))
		atomic_fetch_and(&atomic_load(&masks)[place.bucket], ~((uint64_t)1 << place.bit));
	return true;
}

uint64_t
waits_table_charge(uintptr_t lock, int64_t (*clock_ns)(void))
{
	uint32_t       bucket = (uint32_t)HOOKS_WAITING_BUCKET(lock);
	uint64_t       left = atomic_load(&atomic_load(&masks)[bucket]), sum = 0;
	struct waiter *all = &atomic_load(&waiters)[bucket * PER_BUCKET], *w;
	int64_t        now = 0, since;
	unsigned       found = 0;
	int32_t        crowd;

	for (; left; left &= left - 1) {
		w = &all[__builtin_ctzll(left)];
		if (atomic_load(&w->lock) != lock)
			continue;
		if (now == 0)
			now = clock_ns();
		if (is_gone(w, lock, (struct waits_place){ bucket, __builtin_ctzll(left) }, now))
			continue;
		since = atomic_load(&w->since_ns);
		if (since < now && atomic_compare_exchange_strong(&w->since_ns, &since, now)) {
			sum += (uint64_t)(now - since);
			found++;
		}
	}
	crowd = atomic_load(&crowds[bucket]);
	if (found > 0 && crowd > 0)
		sum += sum / found * (uint64_t)crowd;
	return sum;
}

int32_t
waits_table_first(uintptr_t lock)
{
	uint32_t       bucket = (uint32_t)HOOKS_WAITING_BUCKET(lock);
	uint64_t       left = atomic_load(&atomic_load(&masks)[bucket]);
	struct waiter *all = &atomic_load(&waiters)[bucket * PER_BUCKET], *w;
	int64_t        came, first = INT64_MAX;
	int32_t        tid = 0;

	for (; left; left &= left - 1) {
		w = &all[__builtin_ctzll(left)];
		if (atomic_load(&w->lock) != lock)
			continue;
		came = atomic_load(&w->came_ns);
		if (came < first) {
			first = came;
			tid = atomic_load(&w->tid);
		}
	}
	return tid;
}

uint64_t
waits_table_crowded(void)
{
	return atomic_load(&crowded);
}

void
waits_table_forked(void)
{
	mask *m = atomic_load(&masks);

	for (unsigned i = 0; m && i < HOOKS_WAITING; i++) {
		atomic_store(&m[i], 0);
		atomic_store(&crowds[i], 0);
	}
	if (m)
		any_set(HOOKS_OFF);
}
