/*
 * window_counts.c - what a window has counted: by stack, labels and thread.
 *
 * At most half full, for as long as there is memory to grow.
 *
 * Tests: tests/test_cpu.c, tests/test_cpu_guest.c, tests/test_wall.c.
 */
#include <config.h>

#include "window_counts.h"

#include <errno.h>

#include "labels.h"
#include "pages.h"
#include "stack_table.h"

#define COUNTS_FIRST ((size_t)256) /* stacks before it grows; a power of two */

static struct window_count *
find(const struct window_counts *t, uint32_t stack, uint32_t labels, uint32_t tid)
{
	size_t               i = ((stack ^ labels << 7 ^ tid * 0x9e3779b9U) * 2654435761U) & (t->capacity - 1);
	struct window_count *c = &t->counts[i];

	while (window_count_is(c) && (c->stack != stack || c->labels != labels || c->tid != tid)) {
		i = (i + 1) & (t->capacity - 1);
		c = &t->counts[i];
	}
	return c;
}

static int
grow(struct window_counts *t)
{
	struct window_counts larger = { .capacity = t->capacity ? t->capacity * 2 : COUNTS_FIRST, .used = t->used };

	larger.counts = pages_map(larger.capacity * sizeof(*larger.counts));
	if (!larger.counts)
		return -ENOMEM;
	for (size_t i = 0; i < t->capacity; i++) {
		const struct window_count *c = &t->counts[i];

		if (window_count_is(c))
			*find(&larger, c->stack, c->labels, c->tid) = *c;
	}
	pages_unmap(t->counts, t->capacity * sizeof(*t->counts));
	*t = larger;
	return 0;
}

int
window_counts_open(struct window_counts *t)
{
	return grow(t);
}

void
window_counts_close(struct window_counts *t)
{
	for (size_t i = 0; i < t->capacity; i++)
		if (window_count_is(&t->counts[i])) {
			stack_table_unref(t->counts[i].stack);
			labels_unref(t->counts[i].labels);
		}
	pages_unmap(t->counts, t->capacity * sizeof(*t->counts));
}

bool
window_counts_add(struct window_counts *t, uint32_t stack, uint32_t labels, uint32_t tid, double weight)
{
	struct window_count *c;

	if (t->used >= t->capacity / 2 && grow(t) < 0 && t->used + 1 >= t->capacity)
		return false;
	c = find(t, stack, labels, tid);
	if (!window_count_is(c)) {
		stack_table_ref(stack);
		labels_ref(labels);
		*c = (struct window_count){ .stack = stack, .tid = tid, .labels = labels };
		t->used++;
	}
	c->weight += weight;
	return true;
}
