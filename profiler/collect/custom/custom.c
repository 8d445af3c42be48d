/*
 * custom.c - profiles of the program's own things: who opened what is still open.
 *
 * As pprof.NewProfile: a value (an address, an id) is added when a thing begins and
 * removed when it ends; the profile counts what is there by the stack that added it.
 *
 *     slots[hash of value] --> value, stack id        open addressing, doubled by mmap
 *
 * What a stranger would get wrong:
 * - One lock for all profiles, taken around a fork, so that a child's tables are whole
 *   and its entries go on: the things they stand for are the child's as well.
 * - A slot that is removed is filled by moving later ones up, not by a tombstone: a
 *   program that opens and closes for a year would else have nothing but tombstones.
 * - Profiles are never freed, as in Go: a request may be reading one.
 * - Stacks are as good as the walk is at that moment: before the profiling server has
 *   started there are no unwind tables, and code without frame pointers shows its
 *   first frames alone.
 *
 * Tests: tests/test_custom.c, tests/serve_custom.t
 */
#include <config.h>

#include "custom.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include <component/profiler.h>

#include "clock.h"
#include "collector.h"
#include "fork.h"
#include "hidden_frames.h"
#include "pages.h"
#include "stack_table.h"
#include "unwind.h"

#define SLOTS_FIRST 128

struct slot {
	const void *value;
	uint32_t    stack; /* 0: free */
};

struct component_profile {
	struct collector collector; /* the first member: a profile is found by it */
	char         name[CUSTOM_NAME_MAX];
	struct slot *slots;
	size_t       slot_count; /* 0 or a power of two */
	size_t       count;
	uint64_t     refused; /* for want of room */
};

static pthread_mutex_t           lock = PTHREAD_MUTEX_INITIALIZER;
static struct component_profile  profiles[CUSTOM_PROFILES_MAX]; /* sorted by order of making */
static size_t                    profile_count;

/* Names that are routes and no collectors. */
static const char *const taken[] = { "rates", "symbol" };

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

/* ---- the table; with the lock held ---- */

static size_t
slot_first(const struct component_profile *p, const void *value)
{
	return ((uint64_t)(uintptr_t)value * 0x9e3779b97f4a7c15ULL >> 32) & (p->slot_count - 1);
}

/* Where value is, or the free slot where it would go.  There is one. */
static size_t
slot_of(const struct component_profile *p, const void *value)
{
	size_t i = slot_first(p, value);

	while (p->slots[i].stack && p->slots[i].value != value)
		i = (i + 1) & (p->slot_count - 1);
	return i;
}

/* At most half full. */
static int
slots_room(struct component_profile *p)
{
	struct component_profile old = *p;
	size_t                   count = p->slot_count ? p->slot_count * 2 : SLOTS_FIRST;
	void                    *mem;

	if (p->count >= CUSTOM_VALUES_MAX)
		return -ENOSPC;
	if (p->count + 1 <= p->slot_count / 2)
		return 0;
	mem = pages_map(count * sizeof(*p->slots));
	if (!mem)
		return -ENOMEM;
	p->slots = mem;
	p->slot_count = count;
	for (size_t i = 0; i < old.slot_count; i++)
		if (old.slots[i].stack)
			p->slots[slot_of(p, old.slots[i].value)] = old.slots[i];
	pages_unmap(old.slots, old.slot_count * sizeof(*old.slots));
	return 0;
}

/* Frees slot i; what was pushed further by it moves up. */
static void
slot_close(struct component_profile *p, size_t i)
{
	size_t mask = p->slot_count - 1;

	for (size_t k = (i + 1) & mask; p->slots[k].stack; k = (k + 1) & mask) {
		if (((k - slot_first(p, p->slots[k].value)) & mask) < ((k - i) & mask))
			continue;
		p->slots[i] = p->slots[k];
		i = k;
	}
	p->slots[i].stack = 0;
}

/* ---- as a collector ---- */

static int
snapshot(const struct collector *collector, const struct collect_params *params, struct product *ret)
{
	struct component_profile *c = (struct component_profile *)collector;
	struct profile            p;
	int                       r = 0;

	(void)params;
	profile_init(&p, c->name);
	p.types[0] = p.period_type = (struct profile_type){ c->name, "count" };
	p.type_count = 1;
	p.period = 1;
	p.time_ns = clock_ns(CLOCK_REALTIME);
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < c->slot_count && !r; i++) {
		struct profile_sample s = { .stack = c->slots[i].stack, .values = { 1 } };

		if (!s.stack)
			continue;
		stack_table_ref(s.stack);
		r = profile_add(&p, &s);
	}
	if (c->refused)
		profile_comment(&p, "%s: %llu values were not added, there was no room", c->name,
			(unsigned long long)c->refused);
	pthread_mutex_unlock(&lock);
	if (r) {
		profile_release(&p);
		return r;
	}
	profile_merge(&p);
	ret->type = PRODUCT_PROFILE;
	ret->profile = p;
	return 0;
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
	size_t n;

	pthread_mutex_lock(&lock);
	n = profile_count < max ? profile_count : max;
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < n; i++)
		ret[i] = &profiles[i].collector;
	return n;
}

const struct collector_family collect_custom = { .find = find_collector, .list = list_collectors };

/* ---- the public doors ---- */

/* What may stand in a path and in a header without being escaped. */
static const char *
name_fault(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	if (n == 0 || n >= CUSTOM_NAME_MAX)
		return "has to be 1 to 63 bytes long";
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
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
	const char               *fault = name_fault(name);
	struct component_profile *p;
	int                       r = 0;

	if (fault) {
		component_error_set(err, "profile '%.80s': its name %s", name ? name : "", fault);
		return name && (collector_find(name)) ? -EEXIST : -EINVAL;
	}
	pthread_mutex_lock(&lock);
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
		.products = PRODUCT_PROFILE, .snapshot = snapshot, .no_delta = true, .count = count_of };
	profile_count++;
	*ret_profile = p;
out:
	pthread_mutex_unlock(&lock);
	return r;
}

struct component_profile *
component_profile_lookup(const char *name)
{
	struct component_profile *p;

	pthread_mutex_lock(&lock);
	p = find(name);
	pthread_mutex_unlock(&lock);
	return p;
}

/* With the lock held; takes over the stack's reference. */
static int
add(struct component_profile *p, const void *value, uint32_t stack)
{
	int    r = slots_room(p);
	size_t i;

	if (!r) {
		i = slot_of(p, value);
		if (p->slots[i].stack)
			r = -EEXIST;
		else
			p->slots[i] = (struct slot){ value, stack };
	} else {
		p->refused++;
	}
	if (r)
		stack_table_unref(stack);
	else
		p->count++;
	return r;
}

__attribute__((noinline)) int
component_profile_add(struct component_profile *p, const void *value, unsigned skip)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	uintptr_t          pcs[STACK_FRAMES_MAX];
	int                truncated, r;
	unsigned           n = hidden_frames_drop(pcs, unwind_capture(&regs, pcs, STACK_FRAMES_MAX, &truncated));
	uint32_t           stack;

	if (skip >= n)
		skip = n > 0 ? n - 1 : 0;
	stack = stack_table_add(pcs + skip, n - skip);
	pthread_mutex_lock(&lock);
	r = add(p, value, stack);
	pthread_mutex_unlock(&lock);
	return r;
}

int
component_profile_remove(struct component_profile *p, const void *value)
{
	uint32_t stack = 0;
	size_t   i;

	pthread_mutex_lock(&lock);
	if (p->count > 0) {
		i = slot_of(p, value);
		stack = p->slots[i].stack;
		if (stack) {
			slot_close(p, i);
			p->count--;
		}
	}
	pthread_mutex_unlock(&lock);
	if (!stack)
		return -ENOENT;
	stack_table_unref(stack);
	return 0;
}

size_t
component_profile_count(const struct component_profile *p)
{
	size_t n;

	pthread_mutex_lock(&lock);
	n = p->count;
	pthread_mutex_unlock(&lock);
	return n;
}
