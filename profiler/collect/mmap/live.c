/*
 * live.c - a sorted array of ranges, changed by whoever has the lock for all the others.
 *
 *     live_add() ── event ──▶ ring, or spill ──▶ who gets the lock at once ──▶ ranges, taken parts
 *
 * What a stranger would get wrong:
 * - Who tells of a change waits for nothing: the caller may be an allocator with its own locks held, or
 *   a handler that has interrupted the one who has this lock.  Nor does he work for others for long: with
 *   the lock he takes in a few events, and the rest stays where it is until the next one comes, or a
 *   reader.
 * - Where the holder has lost the processor, the ring fills up.  Then events go to the spill, which is
 *   mostly never touched.  Should that be full, too, an event is lost and counted.
 * - Who has the next place and does not fill it for long is gone: a handler has jumped away from
 *   there, or a child was forked without fork handlers.  Nothing behind that place can be taken in, so from
 *   then on nothing is told.
 * - Who tells of a change leaves the lock to a reader that waits for it.
 * - The order of events is that of their places, wherever they lie.  A range is taken before the kernel
 *   can give its addresses to another thread, and added after it has come, so they never come
 *   the other way round.
 * - What is taken is not forgotten: munmap() may fail, and mremap() says only afterwards where it went.
 *
 * Tests: tests/memory/test_live.c, tests/memory/mmap.t.
 */
#include <config.h>

#include "live.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fork.h"
#include "futex.h"
#include "maps.h"
#include "pages.h"

#define RING      4096   /* events that wait for who has the lock: 160 KiB */
#define SPILL     131072 /* all of them: 5 MiB, a tenth of a second of a thread that only maps and unmaps */
#define SHARE     16     /* events that a hook takes in, at most */
#define TAKEN_MAX 256    /* parts that are on their way, of all threads */
#define WAIT_NS   10000000L /* of a reader for the lock, and again so often: */
#define WAITS     100
#define GONE_NS   (10 * CLOCK_NS_PER_S) /* for which nobody keeps a place that he has and does not fill */

enum event_type { EVENT_ADD = 1, EVENT_TAKE, EVENT_DROP, EVENT_PUT };

struct event {
	_Atomic uint64_t turn; /* one more than the place that it was filled for; 0: never */
	uint32_t         type, number; /* number: of what is taken, or a place */
	uintptr_t        start;
	size_t           bytes, had;
};

struct part {
	uint32_t  taken, place; /* taken 0: free */
	uintptr_t base;         /* of all that was taken with it */
	size_t    offset, bytes;
	bool      left, right; /* more of the same range stayed before it, behind it */
};

static struct {
	_Atomic uint32_t           lock;
	struct live_range *_Atomic ranges; /* NULL: not open */
	_Atomic size_t             count;
	struct part                parts[TAKEN_MAX];
	size_t                     parts_used; /* those behind it are free */
	struct event               ring[RING];
	struct event *_Atomic      spill; /* [SPILL] */
	_Atomic uint64_t           head, tail; /* places that are given, and that were taken in */
	_Atomic uint32_t           numbers, readers; /* readers: that want the lock */
	uint64_t                   stuck_at; /* a place that was not filled while all others were, ... */
	int64_t                    stuck_ns; /* ... and when that was seen first */
	_Atomic uint64_t           lost;
	atomic_bool                opened, broken; /* broken: nothing here is right any more */
	atomic_bool                inherited;      /* a child's, not looked through yet: may be gone since */
} live;

/* Of ThreadSanitizer's runtime, in a program that has it. */
void AnnotateIgnoreReadsBegin(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreReadsEnd(const char *file, int line) __attribute__((weak));

void (*live_grown)(uint32_t place, size_t bytes);

/* Or holding the lock. */
static _Thread_local unsigned telling __attribute__((tls_model("initial-exec")));

/* ---- with the lock held ---- */

/* ThreadSanitizer sees libc's functions and not our lock.  It would find a race here, and wait for the loader while
 * it looks for names, with a lock of its own that whoever has the loader may want. */
static void
move(void *to, const void *from, size_t bytes)
{
	if (AnnotateIgnoreReadsBegin)
		AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	memmove(to, from, bytes);
	if (AnnotateIgnoreReadsEnd)
		AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

/* The first range that ends above the address. */
static size_t
find(uintptr_t address)
{
	size_t low = 0, high = live.count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (live.ranges[middle].limit <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void
insert(size_t at, struct live_range range)
{
	if (live.count == LIVE_MAX) {
		live.lost++;
		return;
	}
	live.count++; /* first: a child that is forked meanwhile has one twice, and none too few */
	move(&live.ranges[at + 1], &live.ranges[at], (live.count - 1 - at) * sizeof(*live.ranges));
	live.ranges[at] = range;
}

static void
erase(size_t at)
{
	move(&live.ranges[at], &live.ranges[at + 1], (live.count - 1 - at) * sizeof(*live.ranges));
	live.count--;
}

static void
part_keep(const struct part *part)
{
	for (size_t i = 0; i < TAKEN_MAX; i++) {
		if (live.parts[i].taken)
			continue;
		live.parts[i] = *part;
		if (i >= live.parts_used)
			live.parts_used = i + 1;
		return;
	}
	/* Of so many parts none has ever been put back: they go, and that is all. */
}

static void
part_free(struct part *p)
{
	p->taken = 0;
	while (live.parts_used && !live.parts[live.parts_used - 1].taken)
		live.parts_used--;
}

static void
parts_empty(void)
{
	memset(live.parts, 0, sizeof(live.parts));
	live.parts_used = 0;
}

/* taken 0: what was there is gone. */
static void
cut(uintptr_t start, uintptr_t limit, uint32_t taken)
{
	size_t at = find(start);

	while (at < live.count && live.ranges[at].start < limit) {
		struct live_range r = live.ranges[at];
		uintptr_t         from = r.start > start ? r.start : start, to = r.limit < limit ? r.limit : limit;

		if (taken)
			part_keep(&(struct part){ taken, r.place, start, from - start, to - from, from > r.start,
				to < r.limit });
		if (from > r.start && to < r.limit) {
			live.ranges[at].limit = from;
			insert(at + 1, (struct live_range){ to, r.limit, r.place });
			return;
		}
		if (from > r.start)
			live.ranges[at++].limit = from;
		else if (to < r.limit)
			live.ranges[at++].start = to;
		else
			erase(at);
	}
}

static void
add(uintptr_t start, uintptr_t limit, uint32_t place)
{
	if (start >= limit)
		return;
	cut(start, limit, 0); /* of what went without a word */
	insert(find(start), (struct live_range){ start, limit, place });
}

/* With its neighbour behind it, if they are of one place. */
static void
join(size_t at)
{
	if (at + 1 >= live.count || live.ranges[at].limit != live.ranges[at + 1].start ||
	    live.ranges[at].place != live.ranges[at + 1].place)
		return;
	live.ranges[at].limit = live.ranges[at + 1].limit;
	erase(at + 1);
}

/* What it has grown by belongs to who made its end.  What did not go anywhere is one again with what
 * it was cut from: a call that failed leaves no more mappings than there were. */
static void
put(const struct event *e)
{
	for (size_t i = 0; i < live.parts_used; i++) {
		struct part *p = &live.parts[i];
		size_t       end, at;

		if (p->taken != e->number)
			continue;
		part_free(p); /* it is read below, and nobody keeps one meanwhile */
		end = p->offset + p->bytes;
		if (end == e->had || end > e->bytes)
			end = e->bytes;
		if (p->offset >= end)
			continue;
		if (live_grown && end > p->offset + p->bytes)
			live_grown(p->place, end - p->offset - p->bytes);
		add(e->start + p->offset, e->start + end, p->place);
		at = find(e->start + p->offset);
		if (p->right && p->base == e->start)
			join(at);
		if (p->left && p->base == e->start && at > 0)
			join(at - 1);
	}
}

static void
apply(const struct event *e)
{
	switch (e->type) {
	case EVENT_ADD:
		add(e->start, e->start + e->bytes, e->number);
		break;
	case EVENT_TAKE:
		cut(e->start, e->start + e->bytes, e->number);
		break;
	case EVENT_PUT:
		put(e);
		break;
	default:
		for (size_t i = 0; i < live.parts_used; i++)
			if (live.parts[i].taken == e->number)
				part_free(&live.parts[i]);
	}
}

/* The event of a place; NULL: it is not there yet. */
static const struct event *
event_at(uint64_t place)
{
	const struct event *at[] = { &live.ring[place % RING], &live.spill[place % SPILL] };

	for (int i = 0; i < 2; i++)
		if (atomic_load_explicit(&at[i]->turn, memory_order_acquire) == place + 1)
			return at[i];
	return NULL;
}

static void
drain(unsigned most)
{
	for (const struct event *e; most-- > 0 && (e = event_at(live.tail)); live.tail++)
		apply(e);
}

/* Does somebody keep a place for ever?  After drain(). */
static bool
is_stuck(void)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	if (live.head == live.tail || event_at(live.tail))
		return false;
	if (!live.stuck_ns || live.stuck_at != live.tail) {
		live.stuck_at = live.tail;
		live.stuck_ns = now;
	}
	return now - live.stuck_ns > GONE_NS;
}

/* ---- any thread ---- */

static bool
lock_wait(void)
{
	bool locked;

	atomic_fetch_add(&live.readers, 1);
	locked = futex_try(&live.lock);
	for (int i = 0; i < WAITS && !locked; i++) {
		locked = futex_try_again(&live.lock);
		if (!locked)
			futex_wait(&live.lock, FUTEX_WAITED_FOR, WAIT_NS);
	}
	atomic_fetch_sub(&live.readers, 1);
	return locked;
}

/* Some of what waits. */
static void
take_part(void)
{
	if (!atomic_load(&live.readers) && futex_try(&live.lock)) {
		drain(SHARE);
		futex_unlock(&live.lock);
	}
}

/* Room for an event, and its place; NULL: none.  What was there a round before has been taken in. */
static struct event *
place_take(uint64_t *ret)
{
	uint64_t place = atomic_load(&live.head), waiting;

	do {
		waiting = place - atomic_load(&live.tail);
		if (waiting >= SPILL && waiting <= INT64_MAX) /* else others were faster, and head is another by now */
			return NULL;
	} while (!atomic_compare_exchange_weak(&live.head, &place, place + 1));
	*ret = place;
	return waiting < RING ? &live.ring[place % RING] : &live.spill[place % SPILL];
}

static void
tell_of(const struct event *what)
{
	uint64_t      place;
	struct event *e = place_take(&place);

	if (!e) {
		take_part();
		e = place_take(&place);
	}
	if (!e) {
		live.lost++;
		return;
	}
	e->type = what->type;
	e->number = what->number;
	e->start = what->start;
	e->bytes = what->bytes;
	e->had = what->had;
	atomic_store_explicit(&e->turn, place + 1, memory_order_release);
	take_part();
}

static void
tell(enum event_type type, uint32_t number, uintptr_t start, size_t bytes, size_t had)
{
	const struct event what = { .type = type, .number = number, .start = start, .bytes = bytes, .had = had };

	if (!atomic_load_explicit(&live.opened, memory_order_acquire) || atomic_load(&live.broken))
		return;
	telling++;
	tell_of(&what);
	telling--;
}

static size_t
whole_pages(size_t bytes)
{
	size_t page = (size_t)getpagesize(); /* a tenth of sysconf(3)'s instructions, in each call of a hook */

	return (bytes + page - 1) & ~(page - 1);
}

/* The kernel refuses all other ranges, before it touches any. */
static bool
may_go(uintptr_t start, size_t bytes)
{
	size_t whole = whole_pages(bytes);

	return whole >= bytes && whole > 0 && start == whole_pages(start) && start + whole >= start;
}

void
live_add(uintptr_t start, size_t bytes, uint32_t place)
{
	tell(EVENT_ADD, place, start, whole_pages(bytes), 0);
}

uint32_t
live_take(uintptr_t start, size_t bytes)
{
	uint32_t number = atomic_fetch_add(&live.numbers, 1) | 1U << 31; /* never 0 */

	if (may_go(start, bytes))
		tell(EVENT_TAKE, number, start, whole_pages(bytes), 0);
	return number;
}

void
live_drop(uint32_t taken)
{
	tell(EVENT_DROP, taken, 0, 0, 0);
}

void
live_put(uint32_t taken, uintptr_t start, size_t bytes, size_t had)
{
	tell(EVENT_PUT, taken, start, whole_pages(bytes), whole_pages(had));
}

size_t
live_count(void)
{
	return atomic_load(&live.inherited) ? 0 : atomic_load(&live.count);
}

bool
live_is_broken(void)
{
	return atomic_load(&live.broken);
}

uint64_t
live_lost(void)
{
	return atomic_load(&live.lost);
}

/* ---- who may wait ---- */

/* With the lock. */
static struct live_range *
copy_all(size_t *ret_count, size_t *ret_bytes)
{
	struct live_range *copy;

	drain(SPILL);
	if (is_stuck())
		atomic_store(&live.broken, true);
	copy = pages_map((live.count + 1) * sizeof(*copy));
	if (!copy)
		return NULL;
	move(copy, live.ranges, live.count * sizeof(*copy));
	*ret_count = live.count;
	*ret_bytes = (live.count + 1) * sizeof(*copy);
	return copy;
}

struct live_range *
live_copy(size_t *ret_count, size_t *ret_bytes)
{
	struct live_range *copy = NULL;

	*ret_count = *ret_bytes = 0;
	if (!atomic_load(&live.ranges) || atomic_load(&live.broken) || atomic_load(&live.inherited))
		return NULL;
	telling++;
	if (lock_wait()) {
		copy = copy_all(ret_count, ret_bytes);
		futex_unlock(&live.lock);
	}
	telling--;
	return copy;
}

/* Is all of it mapped, as /proc/self/maps says now?  Its lines are sorted. */
static bool
is_mapped(const struct maps_line *lines, size_t count, const struct live_range *r)
{
	uintptr_t at = r->start;
	size_t    i = 0, high = count;

	while (i < high) {
		size_t middle = (i + high) / 2;

		if (lines[middle].limit <= at)
			i = middle + 1;
		else
			high = middle;
	}
	for (; i < count && lines[i].start <= at && at < r->limit; i++)
		at = lines[i].limit;
	return at >= r->limit;
}

/* Of a child: what its parent has mapped is its own, as far as it is there still. */
static void
verify(void)
{
	struct maps      maps;
	struct maps_line line, *lines = NULL;
	size_t           count = 0, room = 0, n = 0;
	uintptr_t        last = 0;
	bool             all;

	if (!live.count)
		return;
	all = !maps_read(&maps, NULL);
	while (all && maps_next(&maps, &line)) {
		struct maps_line *more = count < room ? lines : pages_grow(lines, &room, 256, sizeof(*lines));

		all = more != NULL;
		lines = more ? more : lines;
		if (more)
			lines[count++] = line;
	}
	for (size_t i = 0; all && i < live.count; i++) {
		const struct live_range r = live.ranges[i];

		/* One that was being moved may be there twice, or half. */
		if (r.start < r.limit && r.start >= last && r.place && is_mapped(lines, count, &r)) {
			live.ranges[n++] = r;
			last = r.limit;
		}
	}
	live.count = n;
	pages_unmap(lines, room * sizeof(*lines));
	maps_release(&maps);
}

/* What came while nobody looked is of ranges that may be others' now. */
static void
empty(void)
{
	drain(SPILL);
	live.count = 0;
	parts_empty();
}

static int
open_telling(void)
{
	struct live_range *fresh;
	struct event      *spill;

	if (!live.ranges) {
		fresh = pages_map_sparse(LIVE_MAX * sizeof(*fresh));
		spill = pages_map_sparse(SPILL * sizeof(*spill));
		if (!fresh || !spill) {
			pages_unmap(fresh, LIVE_MAX * sizeof(*fresh));
			pages_unmap(spill, SPILL * sizeof(*spill));
			return -ENOMEM;
		}
		atomic_store(&live.spill, spill);
		atomic_store(&live.ranges, fresh);
	}
	if (!lock_wait())
		return -EDEADLK;
	if (live.inherited) {
		verify();
		atomic_store(&live.inherited, false);
	} else {
		empty();
		live.lost = 0;
	}
	futex_unlock(&live.lock);
	atomic_store(&live.opened, true);
	return 0;
}

int
live_open(void)
{
	int r;

	if (atomic_load(&live.broken))
		return -EDEADLK;
	telling++;
	r = open_telling();
	telling--;
	return r;
}

/* The memory stays: a thread may be on its way into the ring. */
void
live_close(void)
{
	if (!atomic_load(&live.opened) || atomic_load(&live.broken))
		return;
	telling++;
	if (lock_wait()) {
		empty();
		futex_unlock(&live.lock);
	}
	telling--;
}

/* ---- fork ---- */

/* Nobody holds the lock for it: threads that map meanwhile would wait for a fork.  Another thread may have been
 * in the midst of a change, so the ranges are looked through before they are used again. */
void
live_forked(void)
{
	if (!live.ranges) /* not opened: another thread may have been at it, with the lock */
		return;
	if (telling) { /* a handler has forked, and what it has interrupted goes on here */
		atomic_store(&live.broken, true);
		return;
	}
	/* Who has a place that is empty yet may not be here. */
	atomic_store(&live.tail, atomic_load(&live.head));
	parts_empty();
	atomic_store(&live.readers, 0);
	atomic_store(&live.lock, FUTEX_FREE);
	atomic_store(&live.inherited, true);
}

FORK_SLOT(FORK_MAPPINGS, NULL, NULL, live_forked);
