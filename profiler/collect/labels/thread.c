/*
 * thread.c - the label set of each thread, and who may read it.
 *
 *     thread-local pointer --> record { tid, current, saved scopes, sets of late }
 *                                ^ a table of records, found by tid
 *
 * A sample takes `current` with a reference: a load, a branch, an atomic addition.  What
 * changes it is in labels/api.c.
 *
 * What a stranger would get wrong:
 * - A handler may come between any two instructions: the new set is stored before the
 *   reference of the old one is given back, so what `current` names is always alive.
 * - The same order lets another thread read it: under the stack table's lock no set is
 *   freed, so what it finds there can be referenced still.
 * - Records are not thread-local, for a thread of a program without hooks ends unseen;
 *   what it held must be found by others.  They ask the kernel when the table has grown
 *   to double, when it is nearly full or has no place, and before memory is said to be full.
 * - A fork may find other threads' records in the middle of a change.  Each step leaves a
 *   reference too many rather than one too few, so the child loses memory at worst.
 *
 * Why not TLS of the size of a record: a program that opens the library by dlopen() has
 * some hundred bytes for all of ours.
 *
 * Tests: tests/labels/test_labels.c, tests/labels/test_samples.c, tests/labels/labels.t
 */
#include <config.h>

#include "thread.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"
#include "fork.h"
#include "our_thread.h"
#include "pages.h"
#include "record.h"
#include "seccomp.h"
#include "thread_events.h"
#include "thread_id.h"

#define RECORDS     LABELS_RECORDS
#define PROBES_MAX  64
#define SWEEP_FIRST 64    /* records in use before the dead are looked for ... */
#define SWEEP_LAST  (RECORDS / 8 * 7) /* ... at the latest; where so many live ... */
#define NO_PLACE    1024  /* ... one of so many who find no place looks for them */
#define PAGE        4096
#define IN_CHANGE   (-1)  /* tid: somebody makes a record his, or empties it */

static struct labels_record *_Atomic records;
static _Atomic unsigned          used, sweep_at = SWEEP_FIRST, probes; /* that any record has needed */
static _Atomic bool              hooked, touched[RECORDS * sizeof(struct labels_record) / PAGE];
static _Atomic(labels_watch_fn *) watcher;

/* BEGIN SIGNAL CONTEXT */

__attribute__((hot)) uint32_t
labels_peek(void)
{
	struct labels_record *r = per_thread.labels;

	return r ? atomic_load_explicit(&r->current, memory_order_relaxed) : 0;
}

uint32_t
labels_here(void)
{
	uint32_t set = labels_peek();

	if (set)
		labels_ref(set);
	return set;
}

/* END SIGNAL CONTEXT */

/* ---- records ---- */

static struct labels_record *
record_at(struct labels_record *table, int32_t tid, unsigned probe)
{
	return &table[((uint32_t)tid + probe * 1021) % RECORDS];
}

/* Otherwise there is no record, and a look would be a page. */
static bool
page_touched(const struct labels_record *table, const struct labels_record *r)
{
	return atomic_load_explicit(&touched[(size_t)(r - table) * sizeof(*r) / PAGE], memory_order_relaxed);
}

static struct labels_record *
records_open(void)
{
	struct labels_record *fresh, *none = NULL, *table = atomic_load_explicit(&records, memory_order_acquire);

	if (table)
		return table;
	fresh = pages_map_sparse(RECORDS * sizeof(*fresh));
	if (!fresh)
		return NULL;
	madvise(fresh, RECORDS * sizeof(*fresh), MADV_NOHUGEPAGE);
	if (!atomic_compare_exchange_strong(&records, &none, fresh))
		pages_unmap(fresh, RECORDS * sizeof(*fresh));
	return atomic_load(&records);
}

static void
drop(uint32_t *set)
{
	uint32_t old = *set;

	*set = 0;
	labels_unref(old);
}

/* Gives back what a record holds; its thread has ended, or is about to. */
static void
record_empty(struct labels_record *r)
{
	uint32_t current = atomic_exchange(&r->current, 0);

	for (r->depth = r->depth < COMPONENT_LABEL_SCOPES_MAX ? r->depth : COMPONENT_LABEL_SCOPES_MAX; r->depth > 0;)
		drop(&r->saved[--r->depth]);
	for (unsigned i = 0; i < LABELS_LATE; i++)
		drop(&r->late[i]);
	labels_unref(current);
	r->busy = 0;
}

/* Takes the record from whoever stands there; false: it was another one's by then. */
static bool
record_seize(struct labels_record *r, int32_t from)
{
	return atomic_compare_exchange_strong(&r->tid, &from, IN_CHANGE);
}

/* Empties the records of threads that are gone, unless a filter may not know how to ask. */
static void
sweep(struct labels_record *table)
{
	int     saved = errno;
	int32_t tid;

	if (seccomp_on() && !our_thread_is())
		return;
	for (unsigned i = 0; i < RECORDS; i++) {
		struct labels_record *r = &table[i];

		if (!page_touched(table, r))
			continue;
		/* Seized before the kernel is asked: afterwards the id may be a new thread's. */
		tid = atomic_load_explicit(&r->tid, memory_order_relaxed);
		if (tid <= 0 || r == per_thread.labels || !record_seize(r, tid))
			continue;
		if (thread_clock_ns(tid) >= 0 || errno != EINVAL) {
			atomic_store(&r->tid, tid);
			continue;
		}
		record_empty(r);
		atomic_store(&r->tid, 0);
		atomic_fetch_sub(&used, 1);
	}
	errno = saved;
}

void
labels_record_sweep(void)
{
	struct labels_record *table = atomic_load(&records);

	if (table)
		sweep(table);
}

static struct labels_record *
record_find(struct labels_record *table, int32_t tid)
{
	/* A dump asks for thousands that have none. */
	unsigned most = atomic_load_explicit(&probes, memory_order_acquire);

	for (unsigned i = 0; table && i < most; i++) {
		struct labels_record *r = record_at(table, tid, i);

		if (page_touched(table, r) && atomic_load_explicit(&r->tid, memory_order_acquire) == tid)
			return r;
	}
	return NULL;
}

/* A free one, or that of a thread of the same id which has vanished. */
static struct labels_record *
record_claim(struct labels_record *table, int32_t tid)
{
	struct labels_record *r = record_find(table, tid);

	if (r && record_seize(r, tid)) {
		record_empty(r);
		atomic_store(&r->tid, tid);
		return r;
	}
	for (unsigned i = 0; i < PROBES_MAX; i++) {
		r = record_at(table, tid, i);
		if (atomic_load_explicit(&r->tid, memory_order_relaxed) == 0 && record_seize(r, 0)) {
			atomic_store(&touched[(size_t)(r - table) * sizeof(*r) / PAGE], true);
			for (unsigned most = atomic_load(&probes); most < i + 1;)
				atomic_compare_exchange_weak(&probes, &most, i + 1);
			atomic_fetch_add(&used, 1);
			atomic_store(&r->tid, tid);
			return r;
		}
	}
	return NULL;
}

/* And says when the next one is due. */
static void
sweep_now(struct labels_record *table)
{
	unsigned live;

	sweep(table);
	live = atomic_load(&used);
	atomic_store(&sweep_at, live < SWEEP_FIRST / 2 ? SWEEP_FIRST : live < SWEEP_LAST / 2 ? live * 2 :
		live < SWEEP_LAST - NO_PLACE ? SWEEP_LAST : UINT_MAX);
}

/* The calling thread's, made if need be; NULL: there is no room. */
struct labels_record *
labels_record_make(void)
{
	static _Atomic unsigned no_place;
	struct labels_record   *table = per_thread.labels ? NULL : records_open();
	unsigned                at = atomic_load(&sweep_at);
	int                     saved = errno;

	if (!table)
		return per_thread.labels;
	if (atomic_load(&used) >= at && atomic_compare_exchange_strong(&sweep_at, &at, UINT_MAX))
		sweep_now(table);
	per_thread.labels = record_claim(table, thread_id_self());
	if (!per_thread.labels && atomic_fetch_add(&no_place, 1) % NO_PLACE == 0) {
		sweep_now(table);
		per_thread.labels = record_claim(table, thread_id_self());
	}
	if (per_thread.labels && !atomic_exchange(&hooked, true))
		thread_events_watch(THREAD_EVENTS_LABELS, true);
	errno = saved;
	return per_thread.labels;
}

void
labels_record_store(struct labels_record *r, uint32_t set)
{
	uint32_t         old = atomic_load_explicit(&r->current, memory_order_relaxed);
	labels_watch_fn *fn = atomic_load_explicit(&watcher, memory_order_acquire);

	atomic_store_explicit(&r->current, set, memory_order_release);
	if (fn && old != set)
		fn(set);
	labels_unref(old);
}

/* ---- threads ---- */

/* A thread has those of who made it. */
static void
on_made(struct thread_events_note *ret, const struct unwind_regs *from)
{
	(void)from;
	ret->id = labels_here();
}

static void
on_started(const struct thread_events_note *note, const void *routine)
{
	struct labels_record *r;

	(void)routine;
	if (!note->id)
		return;
	r = labels_record_make();
	if (r)
		labels_record_store(r, note->id);
	else
		labels_unref(note->id);
}

void
labels_thread_ending(void)
{
	struct labels_record *r = per_thread.labels;

	per_thread.labels = NULL;
	if (!r || !record_seize(r, thread_id_self()))
		return; /* being swept by somebody who will find the thread gone next time */
	record_empty(r);
	atomic_store(&r->tid, 0);
	atomic_fetch_sub(&used, 1);
}

THREAD_EVENTS_SLOT(THREAD_EVENTS_LABELS, .made = on_made, .failed = labels_unref, .started = on_started, .end = labels_thread_ending);

struct reading {
	struct labels_record *record;
	uint32_t       set;
};

/* While no set is freed. */
static void
read_current(void *arg)
{
	struct reading *reading = arg;

	reading->set = atomic_load_explicit(&reading->record->current, memory_order_acquire);
	if (reading->set)
		labels_ref(reading->set);
}

uint32_t
labels_of(pid_t tid)
{
	struct reading reading = { .record = record_find(atomic_load_explicit(&records, memory_order_acquire), tid) };

	if (reading.record && atomic_load_explicit(&reading.record->current, memory_order_relaxed))
		stack_table_exclusively(read_current, &reading);
	return reading.set;
}

void
labels_watch(labels_watch_fn *fn)
{
	atomic_store(&watcher, fn);
}

/* ---- fork ---- */

/* The child's thread has another id; what the others had is swept next time. */
static void
forked(void)
{
	struct labels_record *r = per_thread.labels, *fresh;
	int32_t        tid = thread_id_self();

	atomic_store(&watcher, NULL);
	atomic_store(&sweep_at, SWEEP_FIRST);
	if (!r || atomic_load(&r->tid) == tid)
		return;
	/* A handler that forks in the middle of a change goes back into it, with the record that it has. */
	fresh = r->busy ? NULL : record_claim(atomic_load(&records), tid);
	if (!fresh) { /* its place is not that of the new number, so a dump does not find it */
		atomic_store(&r->tid, tid);
		return;
	}
	/* Its contents move over, references and all. */
	memcpy(fresh->saved, r->saved, sizeof(r->saved));
	memcpy(fresh->late, r->late, sizeof(r->late));
	fresh->depth = r->depth;
	atomic_store(&fresh->current, atomic_load(&r->current));
	per_thread.labels = fresh;
	memset((char *)r + offsetof(struct labels_record, current), 0, sizeof(*r) - offsetof(struct labels_record, current));
	atomic_store(&r->tid, 0);
	atomic_fetch_sub(&used, 1);
}

FORK_SLOT(FORK_LABELS, NULL, NULL, forked);
