/*
 * labels_thread.c - the label set of each thread, and the public calls that change it.
 *
 *     thread-local pointer --> record { tid, current, saved scopes, sets of late }
 *                                ^ a table of records, found by tid
 *
 * A sample takes `current` with a reference: a load, a branch, an atomic addition.  To
 * set a label is to put the new set together, find it among the thread's sets of late or
 * else in the stack table, and store its id.
 *
 * What a stranger would get wrong:
 * - A handler may come between any two instructions: the new set is stored before the
 *   reference of the old one is given back, so what `current` names is always alive.
 * - The same order lets another thread read it: under the stack table's lock no set is
 *   freed, so what it finds there can be referenced still.
 * - Records are not thread-local, for a thread of a program without hooks ends unseen;
 *   what it held must be found by others.  They ask the kernel when the table has grown
 *   to double, and before memory is said to be full.
 * - A fork may find other threads' records in the middle of a change.  Each step leaves a
 *   reference too many rather than one too few, so the child loses memory at worst.
 *
 * Why not TLS of the size of a record: a program that opens the library by dlopen() has
 * some hundred bytes for all of ours.
 *
 * Tests: tests/test_labels.c, tests/labels.t
 */
#include <config.h>

#include "labels_thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <component/labels.h>

#include "hooks_threads.h"
#include "own_thread.h"

#define RECORDS     32768 /* threads that have labels at once: 4 MiB, touched as used */
#define PROBES_MAX  64
#define SCOPES      COMPONENT_LABEL_SCOPES_MAX
#define LATE        8     /* sets of late, a power of two */
#define SWEEP_FIRST 64    /* records in use before the dead are looked for */
#define FULL_SWEEPS 1024  /* of so many sets that find no memory one looks for the dead */
#define PAGE        4096
#define IN_CHANGE   (-1)  /* tid: somebody makes a record his, or empties it */

_Static_assert(COMPONENT_LABEL_KEY_MAX == LABELS_KEY_MAX && COMPONENT_LABEL_VALUE_MAX == LABELS_VALUE_MAX &&
	COMPONENT_LABELS_MAX == LABELS_MAX && COMPONENT_LABELS_BYTES_MAX == LABELS_BYTES_MAX, "as documented");

struct record {
	_Atomic int32_t  tid; /* 0: free */
	_Atomic uint32_t current; /* of each set one reference is held */
	uint32_t         busy;
	uint32_t         depth;
	uint32_t         saved[SCOPES];
	uint32_t         late[LATE];
};

static struct record *_Atomic    records;
static __thread struct record   *mine __attribute__((tls_model("initial-exec")));
static _Atomic unsigned          used, sweep_at = SWEEP_FIRST;
static _Atomic bool              hooked, touched[RECORDS * sizeof(struct record) / PAGE];
static _Atomic(labels_watch_fn *) watcher;
static _Atomic unsigned long     refused, full;

/* BEGIN SIGNAL CONTEXT */

uint32_t
labels_peek(void)
{
	struct record *r = mine;

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

static int32_t
own_tid(void)
{
	return (int32_t)syscall(SYS_gettid);
}

static struct record *
record_at(struct record *table, int32_t tid, unsigned probe)
{
	return &table[((uint32_t)tid + probe * 1021) % RECORDS];
}

static struct record *
records_open(void)
{
	struct record *fresh, *none = NULL, *table = atomic_load_explicit(&records, memory_order_acquire);

	if (table)
		return table;
	fresh = mmap(NULL, RECORDS * sizeof(*fresh), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fresh == MAP_FAILED)
		return NULL;
	madvise(fresh, RECORDS * sizeof(*fresh), MADV_NOHUGEPAGE);
	if (!atomic_compare_exchange_strong(&records, &none, fresh))
		munmap(fresh, RECORDS * sizeof(*fresh));
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
record_empty(struct record *r)
{
	uint32_t current = atomic_exchange(&r->current, 0);

	for (r->depth = r->depth < SCOPES ? r->depth : SCOPES; r->depth > 0;)
		drop(&r->saved[--r->depth]);
	for (unsigned i = 0; i < LATE; i++)
		drop(&r->late[i]);
	labels_unref(current);
	r->busy = 0;
}

/* Takes the record from whoever stands there; false: it was another one's by then. */
static bool
record_seize(struct record *r, int32_t from)
{
	return atomic_compare_exchange_strong(&r->tid, &from, IN_CHANGE);
}

/* Empties the records of threads that are gone. */
static void
sweep(struct record *table)
{
	pid_t   pid = getpid();
	int     saved = errno;
	int32_t tid;

	for (unsigned i = 0; i < RECORDS; i++) {
		struct record *r = &table[i];

		if (!atomic_load_explicit(&touched[i * sizeof(*r) / PAGE], memory_order_relaxed))
			continue; /* a look would be a page */
		/* Seized before the kernel is asked: afterwards the id may be a new thread's. */
		tid = atomic_load_explicit(&r->tid, memory_order_relaxed);
		if (tid <= 0 || r == mine || !record_seize(r, tid))
			continue;
		if (syscall(SYS_tgkill, pid, tid, 0) == 0 || errno != ESRCH) {
			atomic_store(&r->tid, tid);
			continue;
		}
		record_empty(r);
		atomic_store(&r->tid, 0);
		atomic_fetch_sub(&used, 1);
	}
	errno = saved;
}

static struct record *
record_find(struct record *table, int32_t tid)
{
	for (unsigned i = 0; table && i < PROBES_MAX; i++)
		if (atomic_load_explicit(&record_at(table, tid, i)->tid, memory_order_acquire) == tid)
			return record_at(table, tid, i);
	return NULL;
}

/* A free one, or that of a thread of the same id which has vanished. */
static struct record *
record_claim(struct record *table, int32_t tid)
{
	struct record *r = record_find(table, tid);

	if (r && record_seize(r, tid)) {
		record_empty(r);
		atomic_store(&r->tid, tid);
		return r;
	}
	for (unsigned i = 0; i < PROBES_MAX; i++) {
		r = record_at(table, tid, i);
		if (atomic_load_explicit(&r->tid, memory_order_relaxed) == 0 && record_seize(r, 0)) {
			atomic_store(&touched[(size_t)(r - table) * sizeof(*r) / PAGE], true);
			atomic_fetch_add(&used, 1);
			atomic_store(&r->tid, tid);
			return r;
		}
	}
	return NULL;
}

/* The calling thread's, made if need be; NULL: there is no room. */
static struct record *
record_mine(void)
{
	struct record *table = mine ? NULL : records_open();
	unsigned       at = atomic_load(&sweep_at);
	int            saved = errno;

	if (!table)
		return mine;
	if (atomic_load(&used) >= at && atomic_compare_exchange_strong(&sweep_at, &at, RECORDS)) {
		sweep(table);
		at = atomic_load(&used) * 2;
		atomic_store(&sweep_at, at > SWEEP_FIRST ? at : SWEEP_FIRST);
	}
	mine = record_claim(table, own_tid());
	if (mine && !atomic_exchange(&hooked, true))
		hooks_threads_watch(HOOKS_THREADS_LABELS, true);
	errno = saved;
	return mine;
}

/* ---- to set and to clear ---- */

static bool
enter(struct record *r)
{
	if (r->busy)
		return false;
	r->busy = 1;
	atomic_signal_fence(memory_order_seq_cst);
	return true;
}

static void
leave(struct record *r)
{
	atomic_signal_fence(memory_order_seq_cst);
	r->busy = 0;
}

/* Takes over the reference. */
static void
current_store(struct record *r, uint32_t set)
{
	uint32_t         old = atomic_load_explicit(&r->current, memory_order_relaxed);
	labels_watch_fn *fn = atomic_load_explicit(&watcher, memory_order_acquire);

	atomic_store_explicit(&r->current, set, memory_order_release);
	if (fn && old != set)
		fn(set);
	labels_unref(old);
}

static unsigned
draft_slot(const struct labels_draft *d, unsigned words)
{
	uint64_t h = words;

	for (unsigned i = 0; i < words; i++)
		h = (h ^ d->words[i]) * 0x9e3779b97f4a7c15ULL;
	return (unsigned)(h >> 61) & (LATE - 1);
}

/* The set of a draft, from those of late or from the table, with a reference. */
static uint32_t
draft_set(struct record *r, const struct labels_draft *d)
{
	unsigned         words = labels_draft_words(d), slot = draft_slot(d, words), count = 0;
	const uintptr_t *late = r->late[slot] ? stack_table_pcs(r->late[slot], &count) : NULL;
	uint32_t         set, old;

	if (late && count == words && memcmp(late, d->words, words * sizeof(*late)) == 0) {
		labels_ref(r->late[slot]);
		return r->late[slot];
	}
	set = labels_intern(d);
	if (!set && atomic_load(&full) % FULL_SWEEPS == 0) { /* what dead threads hold? */
		sweep(atomic_load(&records));
		set = labels_intern(d);
	}
	if (!set)
		return 0;
	labels_ref(set);
	old = r->late[slot];
	r->late[slot] = set;
	labels_unref(old);
	return set;
}

static int
change(struct record *r, const char *key, const char *value)
{
	struct labels_draft d;
	uint32_t            set = 0;
	int                 err = labels_draft(atomic_load_explicit(&r->current, memory_order_relaxed), key, value, &d);

	if (err) {
		atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
		return err;
	}
	if (d.size > 0 && !(set = draft_set(r, &d))) {
		atomic_fetch_add_explicit(&full, 1, memory_order_relaxed);
		return -ENOMEM;
	}
	current_store(r, set);
	return 0;
}

int
component_label_set(const char *key, const char *value)
{
	struct record *r;
	int            err;

	if (own_thread_is())
		return -EPERM;
	r = record_mine();
	if (!r) {
		atomic_fetch_add_explicit(&full, 1, memory_order_relaxed);
		return -ENOMEM;
	}
	if (!enter(r))
		return -EAGAIN;
	err = change(r, key, value);
	leave(r);
	return err;
}

int
component_label_clear(const char *key)
{
	struct record *r = mine;

	if (!r)
		return key && strnlen(key, LABELS_KEY_MAX + 1) > LABELS_KEY_MAX ? -EINVAL : 0;
	if (key)
		return component_label_set(key, NULL);
	if (!enter(r))
		return -EAGAIN;
	current_store(r, 0);
	leave(r);
	return 0;
}

/* ---- scopes ---- */

struct component_label_scope
component_label_scope_begin(const char *key, const char *value)
{
	struct component_label_scope scope = { 0 };
	struct record               *r = own_thread_is() ? NULL : record_mine();

	if (!r || !enter(r))
		return scope;
	if (r->depth < SCOPES)
		r->saved[r->depth] = labels_here();
	atomic_signal_fence(memory_order_seq_cst);
	scope.depth = ++r->depth;
	if (key)
		change(r, key, value);
	leave(r);
	return scope;
}

void
component_label_scope_end(const struct component_label_scope *scope)
{
	struct record *r = mine;
	uint32_t       inner, depth;

	if (!scope || !scope->depth || !r || scope->depth > r->depth || !enter(r))
		return;
	/* Those within it, which were never ended. */
	depth = r->depth < SCOPES ? r->depth : SCOPES;
	r->depth = scope->depth - 1;
	while (depth > scope->depth) {
		inner = r->saved[--depth];
		labels_unref(inner);
	}
	if (scope->depth <= SCOPES)
		current_store(r, r->saved[scope->depth - 1]);
	leave(r);
}

/* ---- for later ---- */

struct component_labels
component_labels_keep(void)
{
	return (struct component_labels){ labels_here() };
}

int
component_labels_use(const struct component_labels *kept)
{
	uint32_t       set = kept ? kept->set : 0;
	struct record *r;

	if (own_thread_is())
		return -EPERM;
	if (!set)
		return component_label_clear(NULL);
	r = record_mine();
	if (!r) {
		atomic_fetch_add_explicit(&full, 1, memory_order_relaxed);
		return -ENOMEM;
	}
	if (!enter(r))
		return -EAGAIN;
	labels_ref(set);
	current_store(r, set);
	leave(r);
	return 0;
}

void
component_labels_release(struct component_labels *kept)
{
	uint32_t set = kept->set;

	kept->set = 0;
	labels_unref(set);
}

/* ---- threads ---- */

void
labels_thread_started(uint32_t set)
{
	struct record *r;

	if (!set)
		return;
	r = record_mine();
	if (r)
		current_store(r, set);
	else
		labels_unref(set);
}

void
labels_thread_ending(void)
{
	struct record *r = mine;

	mine = NULL;
	if (!r || !record_seize(r, own_tid()))
		return; /* being swept by somebody who will find the thread gone next time */
	record_empty(r);
	atomic_store(&r->tid, 0);
	atomic_fetch_sub(&used, 1);
}

struct reading {
	struct record *record;
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

void
labels_comment(struct profile *p)
{
	unsigned long bad = atomic_load(&refused), none = atomic_load(&full);

	if (bad)
		profile_comment(p, "labels: %lu were refused: a key has 1 to %d bytes, a value %d at most, a thread %d labels "
			"of %zu bytes together", bad, LABELS_KEY_MAX, LABELS_VALUE_MAX, LABELS_MAX, LABELS_BYTES_MAX);
	if (none)
		profile_comment(p, "labels: %lu could not be set: they take a %dth of --profiling-memory at most, and %d "
			"threads may have some", none, LABELS_PART, RECORDS);
}

/* ---- fork ---- */

/* The child's thread has another id; what the others had is swept next time. */
static void
forked(void)
{
	struct record *r = mine;
	int32_t        tid = own_tid();

	atomic_store(&watcher, NULL);
	atomic_store(&sweep_at, SWEEP_FIRST);
	if (!r || atomic_load(&r->tid) == tid)
		return;
	mine = record_claim(atomic_load(&records), tid);
	if (!mine)
		mine = r; /* under its old id: a dump will not find it */
	if (mine == r)
		return;
	/* Its contents move over, references and all. */
	memcpy(mine->saved, r->saved, sizeof(r->saved));
	memcpy(mine->late, r->late, sizeof(r->late));
	mine->depth = r->depth;
	mine->busy = r->busy;
	atomic_store(&mine->current, atomic_load(&r->current));
	memset((char *)r + offsetof(struct record, current), 0, sizeof(*r) - offsetof(struct record, current));
	atomic_store(&r->tid, 0);
	atomic_fetch_sub(&used, 1);
}

__attribute__((constructor)) static void
fork_watch(void)
{
	pthread_atfork(NULL, NULL, forked);
}
