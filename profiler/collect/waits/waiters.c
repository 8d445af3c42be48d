/*
 * waiters.c - waiters by the address of their lock.
 *
 *     masks[hash of address] -> 63 bits, one for each waiter ->  { lock, since, charged to }
 *                               1 bit: waiters of this bucket stand in the next ones
 *
 * A bit is claimed by one atomic operation; what stands beside it is valid while `lock`
 * is not 0.  The masks are in the hooks object, where an unlock reads one of them.
 *
 * What a stranger would get wrong:
 * - Each nanosecond of waiting is charged once: whoever charges moves `since` to now.  So
 *   the sum of all charges never exceeds the sum of the waits, however many unlocks a waiter
 *   had to see.
 * - Not each unlock charges.  The first that a waiter sees does; then who unlocks a
 *   millisecond after the last one that did; and the waiter charges what is left to the last
 *   of them.  A lock that is taken and given up a hundred times while the kernel wakes a
 *   waiter costs one stack, and whoever held it for long is charged for himself all the same.
 * - A waiter whose bucket is full stands in one of the next.  An unlock looks for as many as
 *   `crowds` says; the bit for them keeps the bucket's mask from being 0.
 * - Who is gone without a word (cancelled asynchronously in the middle of a publish, or by
 *   a siglongjmp() that comes from another stack) would be charged for ever.  So whoever is
 *   found waiting for long is asked for by its id, and withdrawn if that thread has ended.
 * - An unlock looks at one word first, which says whether anybody may wait for any lock:
 *   who publishes sets it if it is not set, and it is taken back seldom, and only when
 *   nobody is found (waiters_rest()).  A count of waiters would be written by all
 *   processors that contend, and read by all that do not.
 *
 * Why not a slot for each thread: the holder would have to look at all of them.
 * Why not one sum for all waiters of a lock: count, sum and lock would have to change in
 * one step, and a wait that is never withdrawn could not be found.
 * Tests: tests/waits/test_waits.c, tests/waits/test_guest.c, tests/waits/test_abandoned.c,
 * tests/waits/test_blame.c.
 */
#include <config.h>

#include "waiters.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi.h"
#include "clock.h"
#include "pages.h"

#define PER_BUCKET 64                   /* the last one is ELSEWHERE's */
#define ELSEWHERE  ((uint64_t)1 << 63)  /* waiters of this bucket stand in the next ones */
#define REST_NS    10000000LL           /* at most so often is looked whether all are gone */

struct waiter {
	_Atomic uintptr_t lock; /* 0: not there, or not yet */
	_Atomic int64_t   since_ns; /* charged until then */
	_Atomic uint64_t  charged;  /* whose wait, by its beginning, and the stack: one word */
	_Atomic int32_t   weight;
	_Atomic int64_t   came_ns; /* since it waits; nobody moves that */
	_Atomic int64_t   seen_ns; /* its thread was there */
	_Atomic int32_t   tid;
	_Atomic uint32_t  name;    /* enum hooks_name */
};

typedef _Atomic uint64_t mask;

static struct waiter   *_Atomic waiters; /* [HOOKS_WAITING][PER_BUCKET] */
static mask            *_Atomic masks;
static _Atomic int32_t  crowds[HOOKS_WAITING]; /* of this bucket, in others */
static _Atomic int32_t  leaving[HOOKS_WAITING];
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
waiters_open(uint64_t *hooks_masks)
{
	struct waiter *fresh, *none = NULL;
	size_t         size = sizeof(*fresh) * HOOKS_WAITING * PER_BUCKET;

	if (atomic_load(&masks))
		return 0;
	fresh = pages_map_sparse(size);
	if (!fresh)
		return -ENOMEM;
	if (!atomic_compare_exchange_strong(&waiters, &none, fresh))
		pages_unmap(fresh, size);
	atomic_store(&masks, (mask *)hooks_masks);
	return 0;
}

static uint64_t
charged_to(int64_t came_ns, uint32_t stack)
{
	return (uint64_t)came_ns << 32 | stack;
}

static uint32_t
charged_stack(uint64_t charged)
{
	return (uint32_t)charged;
}

static struct waiter *
waiter_at(struct waits_place place)
{
	return &atomic_load_explicit(&waiters, memory_order_relaxed)[place.bucket * PER_BUCKET + (unsigned)place.bit];
}

/* The lowest bit of a bucket that is free, taken; below 0: none is. */
static int32_t
bit_take(mask *m)
{
	uint64_t taken = atomic_load(m), bit;

	do {
		if (~(taken | ELSEWHERE) == 0)
			return -1;
		bit = ~taken & (taken + 1);
	} while (!atomic_compare_exchange_weak(m, &taken, taken | bit));
	return __builtin_ctzll(bit);
}

static struct waits_place
place_take(uintptr_t lock)
{
	mask              *m = atomic_load_explicit(&masks, memory_order_relaxed);
	uint32_t           home = (uint32_t)HOOKS_WAITING_BUCKET(lock);
	struct waits_place place = { home, home, bit_take(&m[home]) };

	if (place.bit >= 0)
		return place;
	for (uint32_t i = 1; i < HOOKS_WAITING && place.bit < 0; i++) {
		place.bucket = (home + i) % HOOKS_WAITING;
		place.bit = bit_take(&m[place.bucket]);
	}
	if (place.bit < 0) {
		atomic_fetch_add(&crowded, 1);
		return place;
	}
	atomic_fetch_add(&crowds[home], 1);
	atomic_fetch_or(&m[home], ELSEWHERE);
	return place;
}

static void
place_give(struct waits_place place)
{
	mask *m = atomic_load(&masks);

	atomic_fetch_and(&m[place.bucket], ~((uint64_t)1 << place.bit));
	if (place.bucket == place.home || atomic_fetch_sub(&crowds[place.home], 1) > 1)
		return;
	atomic_fetch_and(&m[place.home], ~ELSEWHERE);
	if (atomic_load(&crowds[place.home]) > 0) /* another one came meanwhile */
		atomic_fetch_or(&m[place.home], ELSEWHERE);
}

struct waits_place
waiters_publish(uintptr_t lock, int64_t now_ns, int32_t tid, uint32_t name)
{
	struct waits_place place = place_take(lock);
	struct waiter     *w;

	if (place.bit < 0)
		return place;
	w = waiter_at(place);
	atomic_store_explicit(&w->since_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&w->came_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&w->seen_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&w->charged, charged_to(now_ns, 0), memory_order_relaxed);
	atomic_store_explicit(&w->tid, tid, memory_order_relaxed);
	atomic_store_explicit(&w->name, name, memory_order_relaxed);
	atomic_store(&w->lock, lock);
	if (__atomic_load_n(&component_hooks.wait_any, __ATOMIC_SEQ_CST) == HOOKS_OFF)
		any_set(HOOKS_ON);
	return place;
}

struct waits_charged
waiters_withdraw(struct waits_place place)
{
	struct waits_charged charged = { 0, 0, 0 };
	struct waiter       *w;

	if (place.bit < 0)
		return charged;
	w = waiter_at(place);
	atomic_store(&w->lock, 0);
	charged.stack = charged_stack(atomic_load(&w->charged));
	charged.weight = atomic_load(&w->weight);
	charged.since_ns = atomic_load(&w->since_ns);
	place_give(place);
	return charged;
}

void
waiters_rest(int64_t now_ns)
{
	int64_t last = atomic_load(&rested_ns);

	if (__atomic_load_n(&component_hooks.wait_any, __ATOMIC_RELAXED) == HOOKS_OFF || now_ns - last < REST_NS ||
		!atomic_compare_exchange_strong(&rested_ns, &last, now_ns))
		return;
	if (!anybody())
		any_find();
}

void
waiters_watch(bool on)
{
	if (on)
		any_find();
	else
		any_set(HOOKS_OFF);
}

/* ---- all waiters of a lock ---- */

struct walk {
	uintptr_t          lock;
	struct waits_place place; /* of the last one */
	uint64_t           left;  /* in its bucket, to be looked at */
	int32_t            elsewhere;
};

static struct walk
walk_begin(uintptr_t lock)
{
	uint32_t home = (uint32_t)HOOKS_WAITING_BUCKET(lock);
	uint64_t bits = atomic_load(&atomic_load(&masks)[home]);

	return (struct walk){ lock, { home, home, -1 }, bits & ~ELSEWHERE,
		bits & ELSEWHERE ? atomic_load(&crowds[home]) : 0 };
}

/* NULL: that was the last one. */
static struct waiter *
walk_next(struct walk *walk)
{
	struct waits_place *place = &walk->place;
	uintptr_t           lock;

	for (;;) {
		for (; walk->left; walk->left &= walk->left - 1) {
			place->bit = __builtin_ctzll(walk->left);
			lock = atomic_load(&waiter_at(*place)->lock);
			if (place->bucket != place->home && lock && HOOKS_WAITING_BUCKET(lock) == place->home)
				walk->elsewhere--;
			if (lock != walk->lock)
				continue;
			walk->left &= walk->left - 1;
			return waiter_at(*place);
		}
		place->bucket = (place->bucket + 1) % HOOKS_WAITING;
		if (walk->elsewhere <= 0 || place->bucket == place->home)
			return NULL;
		walk->left = atomic_load(&atomic_load(&masks)[place->bucket]) & ~ELSEWHERE;
	}
}

/* ---- threads that have ended while they waited ---- */

/* One that has waited for long: has its thread ended?  Then it is withdrawn. */
static void
gone_withdraw(struct waiter *w, struct waits_place place, int64_t now)
{
	uintptr_t lock = atomic_load(&w->lock);
	int64_t   seen = atomic_load(&w->seen_ns);

	if (!lock || now - seen < WAITS_TABLE_LIFE_NS || !atomic_compare_exchange_strong(&w->seen_ns, &seen, now))
		return;
	if (syscall(SYS_tgkill, getpid(), atomic_load(&w->tid), 0) == 0 || errno != ESRCH)
		return;
	place.home = (uint32_t)HOOKS_WAITING_BUCKET(lock);
	if (atomic_compare_exchange_strong(&w->lock, &lock, 0))
		place_give(place);
}

void
waiters_sweep(int64_t now_ns)
{
	const mask *m = atomic_load(&masks);

	for (uint32_t b = 0; m && b < HOOKS_WAITING; b++)
		for (uint64_t left = atomic_load(&m[b]) & ~ELSEWHERE; left; left &= left - 1) {
			struct waits_place place = { b, b, __builtin_ctzll(left) };

			gone_withdraw(waiter_at(place), place, now_ns);
		}
}

/* ---- an unlock ---- */

static bool
is_due(struct waiter *w, int64_t now)
{
	return charged_stack(atomic_load(&w->charged)) == 0 || now - atomic_load(&w->since_ns) >= WAITS_TABLE_TURN_NS;
}

int64_t
waiters_due(uintptr_t lock, int64_t (*now_ns)(void))
{
	struct walk    walk = walk_begin(lock);
	struct waiter *w;
	int64_t        now = 0;

	while ((w = walk_next(&walk))) {
		if (now == 0)
			now = now_ns();
		if (is_due(w, now))
			return now;
	}
	return 0;
}

uint64_t
waiters_charge(uintptr_t lock, int64_t now, uint32_t stack, int32_t weight)
{
	struct walk    walk = walk_begin(lock);
	uint64_t       sum = 0, charged;
	int64_t        since;
	struct waiter *w;

	while ((w = walk_next(&walk))) {
		charged = atomic_load(&w->charged);
		since = atomic_load(&w->since_ns);
		if (!is_due(w, now) || since >= now ||
			!atomic_compare_exchange_strong(&w->since_ns, &since, now))
			continue;
		atomic_store(&w->weight, weight);
		atomic_compare_exchange_strong(&w->charged, &charged, (charged & ~(uint64_t)UINT32_MAX) | stack);
		sum += (uint64_t)(now - since);
	}
	return sum;
}

int32_t
waiters_leaving(uintptr_t lock, int32_t by)
{
	return atomic_fetch_add(&leaving[HOOKS_WAITING_BUCKET(lock)], by) + by;
}

int32_t
waiters_first(uintptr_t lock)
{
	struct walk    walk = walk_begin(lock);
	int64_t        came, first = INT64_MAX;
	struct waiter *w;
	int32_t        tid = 0;

	while ((w = walk_next(&walk))) {
		came = atomic_load(&w->came_ns);
		if (came < first) {
			first = came;
			tid = atomic_load(&w->tid);
		}
	}
	return tid;
}

void
waiters_each(void (*found)(void *arg, int32_t tid, uintptr_t lock, uint32_t name), void *arg)
{
	const mask *m = atomic_load(&masks);

	for (uint32_t b = 0; m && b < HOOKS_WAITING; b++)
		for (uint64_t left = atomic_load(&m[b]) & ~ELSEWHERE; left; left &= left - 1) {
			struct waiter *w = waiter_at((struct waits_place){ b, b, __builtin_ctzll(left) });
			uintptr_t      lock = atomic_load(&w->lock);
			int32_t        tid = atomic_load(&w->tid);
			uint32_t       name = atomic_load(&w->name);

			/* Another one's by now: whoever was there has run since. */
			if (lock && atomic_load(&w->lock) == lock)
				found(arg, tid, lock, name);
		}
}

uint64_t
waiters_crowded(void)
{
	return atomic_load(&crowded);
}

void
waiters_forked(void)
{
	mask *m = atomic_load(&masks);

	atomic_store(&crowded, 0);
	for (unsigned i = 0; m && i < HOOKS_WAITING; i++) {
		atomic_store(&m[i], 0);
		atomic_store(&crowds[i], 0);
		atomic_store(&leaving[i], 0);
	}
	if (m)
		any_set(HOOKS_OFF);
}
