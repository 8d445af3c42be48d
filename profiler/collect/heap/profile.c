/*
 * profile.c - profiles of what the heap sampler has counted.
 *
 * What a stranger would get wrong: sites are read in batches, the lock released in
 * between, as what threads count meanwhile is put aside.  Each site is of one moment, all
 * together are of a few; the in-use numbers of a site never are more than its allocations.
 * Tests: tests/heap/test_heap.c, tests/heap/test_accuracy.c.
 */
#include <config.h>

#include "heap.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <component/profiler.h>

#include "bind.h"
#include "clock.h"
#include "collector.h"
#include "labels/thread.h"
#include "lock.h"
#include "rate.h"
#include "resident/resident.h"
#include "set.h"
#include "site.h"
#include "stack_table.h"
#include "utc.h"

#define SNAPSHOT_BATCH 64   /* sites read in one hold of the lock */
#define FORK_MS_MAX    5000 /* a fork of a large process takes a second */
#define BUSY_MS_MAX    200  /* a thread that counts is done in no time, unless it lost the processor */

static void
describe(struct profile *p, const struct collector *c)
{
	struct heap_facts facts;
	struct utc        at;

	heap_facts(&facts);
	collector_profile(c, p);
	p->period_type = (struct profile_type){ "space", "bytes" };
	p->period = (int64_t)facts.rate;
	p->time_ns = clock_ns(CLOCK_REALTIME);
	p->lost = heap_lost();
	p->truncated = facts.truncated;
	if (*heap_status())
		profile_comment(p, "%s", heap_status());
	labels_comment(p);
	if (heap_site_unlabelled())
		profile_comment(p, "labels: %llu samples are counted without theirs: %d sites are told apart by labels, in 1/%d of "
			"--profiling-memory", (unsigned long long)heap_site_unlabelled(), HEAP_SITES_LABELLED,
			LABELS_PART * HEAP_SITES_PART);
	if (heap_site_stackless())
		profile_comment(p, "stacks: %llu samples are counted as [stack table full]: these profiles keep stacks in 1/%d of "
			"--profiling-memory", (unsigned long long)heap_site_stackless(), HEAP_SITES_PART);
	if (facts.since_ns) {
		utc_from_unix(facts.since_ns / CLOCK_NS_PER_S, &at);
		profile_comment(p, "heap: allocations since %lld-%02d-%02dT%02d:%02d:%02dZ%s%s", (long long)at.year, at.month,
			at.day, at.hour, at.minute, at.second, facts.resumed ? "; sampling was off for a time" : "",
			heap_rate() ? "" : "; sampling is off now");
	}
}

static void
sample_fill(struct profile_sample *s, const struct heap_site_key *key, const struct heap_counts *c)
{
	uint64_t objects = (c->alloc_weight + HEAP_WEIGHT_ONE / 2) / HEAP_WEIGHT_ONE;
	uint64_t freed = (c->free_weight + HEAP_WEIGHT_ONE / 2) / HEAP_WEIGHT_ONE;

	memset(s, 0, sizeof(*s));
	s->stack = key->stack;
	s->labels = key->labels;
	s->event_bytes = (int64_t)key->bytes;
	s->values[0] = (int64_t)objects;
	s->values[1] = (int64_t)c->alloc_scaled;
	s->values[2] = (int64_t)(objects - freed);
	s->values[3] = (int64_t)(c->alloc_scaled - c->free_scaled);
	s->counted_values[0] = (int64_t)c->alloc_objects;
	s->counted_values[1] = (int64_t)c->alloc_bytes;
	s->counted_values[2] = (int64_t)(c->alloc_objects - c->free_objects);
	s->counted_values[3] = (int64_t)(c->alloc_bytes - c->free_bytes);
}

/* Waits for a fork that is under way: a profile must not lack what came after. */
static bool
lock_surely(struct heap_lock_hold *h)
{
	struct timespec pause = { 0, 1000000 };

	heap_fork_look();
	for (int waited_ms = 0; !heap_lock(h); waited_ms++) {
		if (waited_ms >= FORK_MS_MAX || heap_lock_is_broken())
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* Some sites from i on, up to one where a thread is counting; gives the lock back.  How many were read, 0 at
 * the end, -EAGAIN: that one was the first. */
static int
read_batch(size_t i, bool anyway, struct profile_sample *batch, const struct heap_lock_hold *hold)
{
	struct heap_counts    counts;
	struct heap_site_key  key;
	int                   n = 0, r = 0;

	heap_set_settle();
	while (n < SNAPSHOT_BATCH &&
	       (r = heap_site_read(i + (size_t)n, anyway && n == 0, &key, &counts)) > 0)
		sample_fill(&batch[n++], &key, &counts);
	heap_unlock(hold);
	return n == 0 && r < 0 ? -EAGAIN : n;
}

/* The same, whatever it takes; -EBUSY after a fork that would not end. */
static int
read_some(size_t i, struct profile_sample *batch)
{
	struct timespec       pause = { 0, 1000000 };
	struct heap_lock_hold hold;
	int                   n;

	for (int waited_ms = 0;; waited_ms++) {
		if (!lock_surely(&hold))
			return -EBUSY;
		n = read_batch(i, waited_ms >= BUSY_MS_MAX, batch, &hold);
		if (n != -EAGAIN)
			return n;
		nanosleep(&pause, NULL);
	}
}

int
heap_snapshot(struct profile *ret, bool allocs)
{
	struct profile_sample batch[SNAPSHOT_BATCH];
	struct profile        p;
	size_t                i = 0;
	int                   n, r = 0;

	describe(&p, allocs ? &collect_allocs : &collect_heap);
	p.default_type = allocs ? "alloc_space" : NULL;
	while (heap_bound() && r == 0 && (n = read_some(i, batch)) != 0) {
		if (n < 0) {
			r = n;
			break;
		}
		i += (size_t)n;
		for (int k = 0; k < n && r == 0; k++) {
			if (batch[k].counted_values[0] == 0)
				continue; /* its first block found no memory */
			stack_table_ref(batch[k].stack);
			labels_ref(batch[k].labels);
			r = profile_add(&p, &batch[k]);
		}
	}
	return profile_done(&p, r, ret);
}

/* Bytes in use, as the heap profile estimates them; reads every site.  0, or -EBUSY while a fork is
 * under way: it is asked on the server's loop. */
static int
heap_live_bytes(uint64_t *ret)
{
	struct profile_sample batch[SNAPSHOT_BATCH];
	struct heap_lock_hold hold;
	size_t                i = 0;
	int                   n = heap_bound();

	*ret = 0;
	heap_fork_look();
	for (; n > 0; i += (size_t)n) {
		if (!heap_lock(&hold))
			return -EBUSY;
		n = read_batch(i, true, batch, &hold);
		for (int k = 0; k < n; k++)
			*ret += (uint64_t)batch[k].values[3];
	}
	return 0;
}

/* ---- as collectors ---- */

static int
collect(const struct collector *c, const struct collect_params *params, struct product *ret)
{
	int r = heap_snapshot(&ret->profile, c == &collect_allocs);

	ret->type = PRODUCT_PROFILE;
	if (!r && params->text)
		resident_process(&ret->profile.process);
	if (!r && params->gc)
		profile_comment(&ret->profile, "gc=1: there is no garbage collector in this process, nothing was collected");
	return r;
}

static size_t
collect_count(const struct collector *c)
{
	(void)c;
	return heap_site_count();
}

static const char *
missing(void)
{
	if (heap_rate() > 0 || heap_site_count() > 0)
		return "";
	/* heap_status() would say just that it is off. */
	return *heap_bind_status() ? heap_bind_status() :
				     "heap sampling is off; component_profiler_set_heap_rate() switches it on";
}

static int64_t
rate_get(void)
{
	return heap_rate() < INT64_MAX ? (int64_t)heap_rate() : INT64_MAX;
}

static int
rate_set(int64_t rate)
{
	return heap_set_rate((uint64_t)rate);
}

static const struct collector_rate rate = {
	.option = "heap-profile-rate",
	.help = "Mean bytes between sampled allocations; 0 turns heap sampling off.",
	.unit = COLLECTOR_BYTES,
	.get = rate_get,
	.set = rate_set,
	.option_at = offsetof(struct component_profiler_options, heap_rate_bytes),
};

#define HEAP_TYPES \
	{ { "alloc_objects", "count" }, { "alloc_space", "bytes" }, { "inuse_objects", "count" }, { "inuse_space", "bytes" } }

static void
figures(struct collector_figures *ret)
{
	ret->samples = heap_taken();
	ret->lost = heap_lost();
}

const struct collector collect_heap = {
	.name = "heap",
	.description = "A sampling of memory allocations of live objects. The gc GET parameter is accepted; a C process "
		"has nothing to collect.",
	.products = PRODUCT_PROFILE,
	.types = HEAP_TYPES,
	.text = PRODUCT_TEXT_HEAP,
	.snapshot = collect,
	.takes_gc = true,
	.count = collect_count,
	.status_name = "heap and allocs",
	.status = heap_status,
	.in_force = heap_bind_in_force,
	.missing = missing,
	.in_use = heap_live_bytes,
	.figures = figures,
	.rate = &rate,
	.start = heap_foresee,
	.forked = heap_forked,
};

const struct collector collect_allocs = {
	.name = "allocs",
	.description = "A sampling of all past memory allocations",
	.products = PRODUCT_PROFILE,
	.types = HEAP_TYPES,
	.text = PRODUCT_TEXT_HEAP,
	.snapshot = collect,
	.count = collect_count,
	.status_name = "",
	.status = heap_status,
	.missing = missing,
};
