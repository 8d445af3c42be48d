/*
 * custom.c - profiles of the program's own things: who opened what is still open.
 *
 * As pprof.NewProfile: a value (an address, an id) is added when a thing begins and
 * removed when it ends; the profile counts what is there by the stack that added it.
 *
 *     values: value --> stack id        table.h
 *
 * What a stranger would get wrong:
 * - One lock for all profiles, taken around a fork, so that a child's tables are whole
 *   and its entries go on: the things they stand for are the child's as well.
 * - Profiles are never freed, as in Go: a request may be reading one.
 * - Stacks are as good as the walk is at that moment: before the profiling server has
 *   started there are no unwind tables, and code without frame pointers shows its
 *   first frames alone.
 *
 * Tests: tests/custom/test_custom.c, tests/custom/custom.t
 */
#include <config.h>

#include "custom.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include <component/profiler.h>

#include "clock.h"
#include "collector.h"
#include "fork.h"
#include "hidden_frames.h"
#include "our_lock.h"
#include "stack_table.h"
#include "table.h"
#include "unwind.h"
#include "window_counts.h"

struct component_profile {
	struct collector collector; /* the first member: a profile is found by it */
	char         name[CUSTOM_NAME_MAX];
	struct table values;  /* to their stacks, of which one reference is held */
	uint64_t     refused; /* for want of room */
};

static pthread_mutex_t           lock = PTHREAD_MUTEX_INITIALIZER;
static struct component_profile  profiles[CUSTOM_PROFILES_MAX]; /* the oldest first */
static size_t                    profile_count;

/* Names that are routes and no collectors. */
static const char *const taken[] = { "rates", "status", "stop", "symbol" };

static void
on_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

static void
on_forked(void)
{
	pthread_mutex_unlock(&lock);
}

FORK_SLOT(FORK_PROFILES, on_fork_prepare, on_forked, on_forked);

/* ---- as a collector ---- */

static int
snapshot(const struct collector *collector, const struct collect_params *params, struct product *ret)
{
	struct component_profile *c = (struct component_profile *)collector;
	struct window_counts      counts = { 0 }; /* by stack: a million values would be 80 MiB of samples */
	struct profile            p;
	sigset_t                  mask;
	uint64_t                  left_out = 0;
	int                       r = 0;

	(void)params;
	collector_profile(collector, &p);
	p.period_type = p.types[0];
	p.period = 1;
	p.time_ns = clock_ns(CLOCK_REALTIME);
	our_lock_take(&lock, &mask);
	for (size_t i = 0; i < c->values.size; i++)
		if (c->values.slots[i].value && !window_counts_add(&counts, (uint32_t)c->values.slots[i].value, 0, 0, 1))
			left_out++;
	if (left_out)
		profile_comment(&p, "%s: %llu values are left out, there is no room for so many stacks", c->name,
			(unsigned long long)left_out);
	if (c->refused)
		profile_comment(&p, "%s: %llu values were not added, there was no room", c->name,
			(unsigned long long)c->refused);
	our_lock_release(&lock, &mask);
	for (size_t i = 0; i < counts.table.size && !r; i++) {
		const struct window_count *n = window_counts_at(&counts, i);

		if (!n)
			continue;
		stack_table_ref(n->stack);
		r = profile_add(&p, &(struct profile_sample){ .stack = n->stack, .values = { (int64_t)n->weight } });
	}
	window_counts_close(&counts);
	ret->type = PRODUCT_PROFILE;
	return profile_done(&p, r, &ret->profile);
}

static size_t
count_of(const struct collector *c)
{
	return component_profile_count((const struct component_profile *)c);
}

static struct component_profile *
find(const char *name)
{
	for (size_t i = 0; i < profile_count; i++)
		if (!strcmp(profiles[i].name, name))
			return &profiles[i];
	return NULL;
}

static const struct collector *
find_collector(const char *name)
{
	struct component_profile *p = component_profile_lookup(name);

	return p ? &p->collector : NULL;
}

static size_t
list_collectors(const struct collector **ret, size_t max)
{
	sigset_t mask;
	size_t   n;

	our_lock_take(&lock, &mask);
	n = profile_count < max ? profile_count : max;
	our_lock_release(&lock, &mask);
	for (size_t i = 0; i < n; i++)
		ret[i] = &profiles[i].collector;
	return n;
}

const struct collector_family collect_custom = { .find = find_collector, .list = list_collectors };

/* ---- the public doors ---- */

/* What may stand in a path and in a header without being escaped; isalnum() has more in some locales. */
#define NAME_BYTES ".-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static const char *
name_fault(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	if (n == 0 || n >= CUSTOM_NAME_MAX)
		return "has to be 1 to 63 bytes long";
	if (strspn(name, NAME_BYTES) != n)
		return "may hold letters, digits, '.', '_' and '-'";
	if (strspn(name, ".") == n)
		return "may not be of dots alone";
	if (collector_find(name))
		return "is a profile already";
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (!strcmp(name, taken[i]))
			return "is a page of the server";
	return NULL;
}

int
component_profile_new(const char *name, struct component_profile **ret_profile, struct component_error *err)
{
	sigset_t                  mask;
	const char               *fault = name_fault(name);
	struct component_profile *p;
	int                       r = 0;

	if (fault) {
		component_error_set(err, "profile '%.80s': its name %s", name ? name : "", fault);
		return name && collector_find(name) ? -EEXIST : -EINVAL;
	}
	our_lock_take(&lock, &mask);
	if (find(name)) {
		component_error_set(err, "profile '%s': its name is a profile already", name);
		r = -EEXIST;
		goto out;
	}
	if (profile_count == CUSTOM_PROFILES_MAX) {
		component_error_set(err, "profile '%s': there are %d already, no more can be made", name,
			CUSTOM_PROFILES_MAX);
		r = -ENOSPC;
		goto out;
	}
	p = &profiles[profile_count];
	strcpy(p->name, name);
	p->collector = (struct collector){ .name = p->name, .description = "A profile of the program's own",
		.products = PRODUCT_PROFILE, .types = { { p->name, "count" } }, .snapshot = snapshot,
		.no_delta = true, .count = count_of };
	profile_count++;
	*ret_profile = p;
out:
	our_lock_release(&lock, &mask);
	return r;
}

struct component_profile *
component_profile_lookup(const char *name)
{
	sigset_t                  mask;
	struct component_profile *p;

	our_lock_take(&lock, &mask);
	p = find(name);
	our_lock_release(&lock, &mask);
	return p;
}

/* With the lock held; takes over the stack's reference. */
static int
add(struct component_profile *p, const void *value, uint32_t stack)
{
	int r = -EEXIST;

	if (!table_get(&p->values, (uintptr_t)value)) {
		r = p->values.count < CUSTOM_VALUES_MAX ? table_put(&p->values, (uintptr_t)value, stack) : -ENOSPC;
		p->refused += r != 0;
	}
	if (r)
		stack_table_unref(stack);
	return r;
}

__attribute__((noinline)) int
component_profile_add(struct component_profile *p, const void *value, unsigned skip)
{
	sigset_t           mask;
	struct unwind_regs regs = UNWIND_REGS_HERE;
	uintptr_t          pcs[STACK_FRAMES_MAX];
	int                truncated, r;
	unsigned           n = hidden_frames_drop(pcs, unwind_capture(&regs, pcs, STACK_FRAMES_MAX, &truncated));
	uint32_t           stack;

	if (!p)
		return -EINVAL;
	if (skip >= n)
		skip = n > 0 ? n - 1 : 0;
	stack = stack_table_add(pcs + skip, n - skip);
	our_lock_take(&lock, &mask);
	r = add(p, value, stack);
	our_lock_release(&lock, &mask);
	return r;
}

int
component_profile_remove(struct component_profile *p, const void *value)
{
	sigset_t mask;
	uint32_t stack;

	if (!p)
		return -EINVAL;
	our_lock_take(&lock, &mask);
	stack = (uint32_t)table_remove(&p->values, (uintptr_t)value);
	our_lock_release(&lock, &mask);
	if (!stack)
		return -ENOENT;
	stack_table_unref(stack);
	return 0;
}

size_t
component_profile_count(const struct component_profile *p)
{
	sigset_t mask;
	size_t   n;

	if (!p)
		return 0;
	our_lock_take(&lock, &mask);
	n = p->values.count;
	our_lock_release(&lock, &mask);
	return n;
}
