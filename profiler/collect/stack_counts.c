/*
 * stack_counts.c - counters in an open table, found by the id of their stack.
 *
 *     slots[hash of stack id ...] -> stack, count, value
 *
 * A slot is taken by one compare-and-swap of its stack and never given back, so
 * readers and writers need no lock, and an event that interrupts another one on the
 * same thread is as good as any.
 *
 * What a stranger would get wrong: count and value are two stores.  A reader may see
 * one event's count without its value; sums are exact once the event is over.
 * A sum that would not fit stays at the largest number: a profile that jumps back
 * would be worse than one that stops.
 *
 * Why not heap/site.c's sites: those are made and read under the heap's lock, which
 * blocks all signals for each event.
 * Tests: tests/collect/test_stack_counts.c.
 */
#include <config.h>

#include "stack_counts.h"

#include <errno.h>
#include <string.h>

#include "pages.h"

#define PROBES_MAX 64 /* neighbours looked at before the table counts as full */

int
stack_counts_open(struct stack_counts *s)
{
	struct site *fresh, *none = NULL;
	size_t       size = SITES_MAX * sizeof(*fresh);

	if (atomic_load(&s->slots))
		return 0;
	fresh = pages_map_sparse(size);
	if (!fresh)
		return -ENOMEM;
	if (!atomic_compare_exchange_strong(&s->slots, &none, fresh))
		pages_unmap(fresh, size); /* another thread was first */
	return 0;
}

static void
grow(_Atomic uint64_t *sum, uint64_t by)
{
	uint64_t old = atomic_load_explicit(sum, memory_order_relaxed), more;

	do {
		if (__builtin_add_overflow(old, by, &more) || more > INT64_MAX)
			more = INT64_MAX;
	} while (!atomic_compare_exchange_weak_explicit(sum, &old, more, memory_order_relaxed, memory_order_relaxed));
}

/* The slot of this stack, taken for it if need be; NULL: full. */
static struct site *
site_of(struct stack_counts *s, uint32_t stack, bool *ret_new)
{
	struct site *slots = atomic_load_explicit(&s->slots, memory_order_acquire);
	uint32_t     at = stack * 0x9e3779b1U >> 16, there;

	*ret_new = false;
	if (stack < STACK_PSEUDO_MAX)
		return &s->pseudo[stack];
	if (!slots)
		return NULL;
	for (unsigned i = 0; i < PROBES_MAX; i++) {
		struct site *slot = &slots[(at + i) % SITES_MAX];

		there = atomic_load_explicit(&slot->stack, memory_order_acquire);
		if (there == 0) {
			touched_mark(&s->touched, (at + i) % SITES_MAX);
			*ret_new = atomic_compare_exchange_strong(&slot->stack, &there, stack);
			if (*ret_new)
				return slot;
		}
		if (there == stack)
			return slot;
	}
	return NULL;
}

uint32_t
stack_counts_add(struct stack_counts *s, uint32_t stack, uint64_t count, uint64_t value)
{
	bool         is_new;
	struct site *slot = site_of(s, stack, &is_new);

	if (!is_new)
		stack_table_unref(stack); /* the slot has its own */
	if (!slot) {
		slot = &s->pseudo[STACK_PSEUDO_FULL];
		stack = STACK_PSEUDO_FULL;
	}
	grow(&slot->value, value);
	grow(&slot->count, count);
	return stack;
}

void
stack_counts_more(struct stack_counts *s, uint32_t site, uint64_t count, uint64_t value)
{
	stack_table_ref(site);
	stack_counts_add(s, site, count, value);
}

static uint64_t
rounded(const struct site *slot)
{
	return (atomic_load_explicit(&slot->count, memory_order_relaxed) + SITES_ONE / 2) / SITES_ONE;
}

/* The first from *i on that may have been taken, which *i tells then; NULL: there is none. */
static struct site *
slot_from(struct stack_counts *s, size_t *i)
{
	struct site *slots = atomic_load(&s->slots);
	size_t       at;

	if (*i < STACK_PSEUDO_MAX)
		return &s->pseudo[*i];
	at = slots ? touched_next(&s->touched, *i - STACK_PSEUDO_MAX) : SITES_MAX;
	*i = at + STACK_PSEUDO_MAX;
	return at < SITES_MAX ? &slots[at] : NULL;
}

size_t
stack_counts_count(struct stack_counts *s)
{
	size_t       n = 0;
	struct site *slot;

	for (size_t i = 0; (slot = slot_from(s, &i)); i++)
		n += atomic_load(&slot->count) > 0 || atomic_load(&slot->value) > 0;
	return n;
}

uint64_t
stack_counts_total(struct stack_counts *s)
{
	uint64_t     sum = 0;
	struct site *slot;

	for (size_t i = 0; (slot = slot_from(s, &i)); i++)
		sum += rounded(slot);
	return sum;
}

int
stack_counts_profile(struct stack_counts *s, struct profile *p)
{
	struct profile_sample sample;
	struct site          *slot;
	int                   r = 0;

	for (size_t i = 0; r == 0 && (slot = slot_from(s, &i)); i++) {
		memset(&sample, 0, sizeof(sample));
		sample.stack = i < STACK_PSEUDO_MAX ? (uint32_t)i : atomic_load(&slot->stack);
		sample.values[0] = (int64_t)rounded(slot);
		sample.values[1] = (int64_t)atomic_load_explicit(&slot->value, memory_order_relaxed);
		if (sample.values[0] == 0 && sample.values[1] == 0)
			continue;
		if (p->type_count < 2)
			sample.values[1] = 0;
		stack_table_ref(sample.stack);
		r = profile_add(p, &sample);
	}
	return r;
}

void
stack_counts_forked(struct stack_counts *s)
{
	struct site *slot;

	for (size_t i = 0; (slot = slot_from(s, &i)); i++) {
		if (i >= STACK_PSEUDO_MAX && !atomic_load_explicit(&slot->stack, memory_order_relaxed))
			continue; /* reading leaves the page as it is */
		atomic_store(&slot->count, 0);
		atomic_store(&slot->value, 0);
	}
}
