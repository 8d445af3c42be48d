/*
 * api.c - the public calls that change a thread's labels.
 *
 *     key, value --> draft of the new set --> among the thread's sets of late? --> store
 *                                             else in the stack table, interned
 *
 * What a stranger would get wrong: `busy` is for a handler of the daemon that calls in
 * here while its thread is in here already; it is refused.  The reference of a saved set
 * is the scope's until its end hands it to `current`.
 *
 * Why not a table of sets found by (set, key, value): the values' bytes would have to be
 * compared all the same, and the draft costs no more than that.
 *
 * Tests: tests/labels/test_labels.c, tests/labels/labels.t
 */
#include <config.h>

#include <component/labels.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "our_thread.h"
#include "record.h"
#include "thread.h"

#define SCOPES      COMPONENT_LABEL_SCOPES_MAX
#define FULL_SWEEPS 1024 /* of so many sets that find no memory one looks for the dead */

_Static_assert(COMPONENT_LABEL_KEY_MAX == LABELS_KEY_MAX && COMPONENT_LABEL_VALUE_MAX == LABELS_VALUE_MAX &&
	COMPONENT_LABELS_MAX == LABELS_MAX && COMPONENT_LABELS_BYTES_MAX == LABELS_BYTES_MAX, "as documented");

static _Atomic unsigned long refused, full, busy;

/* ---- to set and to clear ---- */

static bool
enter(struct labels_record *r)
{
	if (r->busy) {
		atomic_fetch_add_explicit(&busy, 1, memory_order_relaxed);
		return false;
	}
	r->busy = 1;
	atomic_signal_fence(memory_order_seq_cst);
	return true;
}

/* The calling thread's record, made if need be, and entered.  0 or a negative errno.  Inline:
 * a call is a tenth of component_labels_use(). */
static inline __attribute__((always_inline)) int
enter_mine(struct labels_record **ret)
{
	if (our_thread_is())
		return -EPERM;
	*ret = labels_record_make();
	if (*ret)
		return enter(*ret) ? 0 : -EAGAIN;
	atomic_fetch_add_explicit(&full, 1, memory_order_relaxed);
	return -ENOMEM;
}

static void
leave(struct labels_record *r)
{
	atomic_signal_fence(memory_order_seq_cst);
	r->busy = 0;
}

static unsigned
draft_slot(const struct labels_draft *d, unsigned words)
{
	uint64_t h = words;

	for (unsigned i = 0; i < words; i++)
		h = (h ^ d->words[i]) * 0x9e3779b97f4a7c15ULL;
	return (unsigned)(h >> 61) & (LABELS_LATE - 1);
}

/* The set of a draft, from those of late or from the table, with a reference.  0 or a negative
 * errno. */
static int
draft_set(struct labels_record *r, const struct labels_draft *d, uint32_t *ret)
{
	unsigned         words = labels_draft_words(d), slot = draft_slot(d, words), count = 0;
	const uintptr_t *late = r->late[slot] ? stack_table_pcs(r->late[slot], &count) : NULL;
	uint32_t         set, old;

	if (late && count == words && memcmp(late, d->words, words * sizeof(*late)) == 0) {
		labels_ref(r->late[slot]);
		*ret = r->late[slot];
		return 0;
	}
	set = labels_intern(d);
	if (!set && atomic_load(&full) % FULL_SWEEPS == 0) { /* what dead threads hold? */
		labels_record_sweep();
		set = labels_intern(d);
	}
	if (set == LABELS_BUSY)
		return -EAGAIN;
	if (!set)
		return -ENOMEM;
	labels_ref(set);
	old = r->late[slot];
	r->late[slot] = set;
	labels_unref(old);
	*ret = set;
	return 0;
}

static int
change(struct labels_record *r, const char *key, const char *value)
{
	struct labels_draft d;
	uint32_t            set = 0;
	int                 err = labels_draft(atomic_load_explicit(&r->current, memory_order_relaxed), key, value, &d);

	if (err) {
		atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
		return err;
	}
	if (d.size > 0)
		err = draft_set(r, &d, &set);
	if (err) {
		atomic_fetch_add_explicit(err == -ENOMEM ? &full : &busy, 1, memory_order_relaxed);
		return err;
	}
	labels_record_store(r, set);
	return 0;
}

int
component_label_set(const char *key, const char *value)
{
	struct labels_record *r;
	int                   err = enter_mine(&r);

	if (err)
		return err;
	err = change(r, key, value);
	leave(r);
	return err;
}

int
component_label_clear(const char *key)
{
	struct labels_record *r = per_thread.labels;

	if (!r)
		return key && strnlen(key, LABELS_KEY_MAX + 1) > LABELS_KEY_MAX ? -EINVAL : 0;
	if (key)
		return component_label_set(key, NULL);
	if (!enter(r))
		return -EAGAIN;
	labels_record_store(r, 0);
	leave(r);
	return 0;
}

/* ---- scopes ---- */

struct component_label_scope
component_label_scope_begin(const char *key, const char *value)
{
	struct component_label_scope scope = { 0 };
	struct labels_record               *r = our_thread_is() ? NULL : labels_record_make();

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
	struct labels_record *r = per_thread.labels;
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
		labels_record_store(r, r->saved[scope->depth - 1]);
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
	uint32_t              set = kept ? kept->set : 0;
	struct labels_record *r;
	int                   err;

	if (!set)
		return our_thread_is() ? -EPERM : component_label_clear(NULL);
	err = enter_mine(&r);
	if (err)
		return err;
	labels_ref(set);
	labels_record_store(r, set);
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

void
labels_comment(struct profile *p)
{
	unsigned long bad = atomic_load(&refused), none = atomic_load(&full), late = atomic_load(&busy);

	if (bad)
		profile_comment(p, "labels: %lu were refused: a key has 1 to %d bytes, a value %d at most, a thread %d labels "
			"of %zu bytes together", bad, LABELS_KEY_MAX, LABELS_VALUE_MAX, LABELS_MAX, LABELS_BYTES_MAX);
	if (none)
		profile_comment(p, "labels: %lu could not be set: they take a %dth of --profiling-memory at most, and %d "
			"threads may have some", none, LABELS_PART, LABELS_RECORDS);
	if (late)
		profile_comment(p, "labels: %lu were not set: a signal handler came in the middle of another change, or the "
			"table was busy for two seconds", late);
}
