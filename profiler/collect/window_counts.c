/*
 * window_counts.c - what a window, or a snapshot, has counted: by stack, labels and thread.
 *
 * Tests: tests/cpu/test_cpu.c, tests/cpu/test_guest.c, tests/wall/test_wall.c,
 * tests/custom/test_custom.c.
 */
#include <config.h>

#include "window_counts.h"

#include <errno.h>

#include "labels.h"
#include "stack_table.h"

static bool
is_same(const void *what, uint64_t value)
{
	const struct window_count *a = what, *b = (const struct window_count *)(uintptr_t)value;

	return a->stack == b->stack && a->labels == b->labels && a->tid == b->tid;
}

static void
release(struct window_counts *t)
{
	table_release(&t->table);
	arena_release(&t->arena);
}

void
window_counts_close(struct window_counts *t)
{
	const struct window_count *c;

	for (size_t i = 0; i < t->table.size; i++) {
		c = window_counts_at(t, i);
		if (c) {
			stack_table_unref(c->stack);
			labels_unref(c->labels);
		}
	}
	release(t);
}

void
window_counts_forget(struct window_counts *t)
{
	if (t->table.count > WINDOW_COUNTS_FEW)
		release(t);
	else
		window_counts_close(t);
}

bool
window_counts_add(struct window_counts *t, uint32_t stack, uint32_t labels, uint32_t tid, double weight)
{
	const struct window_count want = { .stack = stack, .tid = tid, .labels = labels };
	uint64_t                  key = (uint64_t)(labels ^ tid * 0x9e3779b9U) << 32 | stack;
	struct window_count      *c = (struct window_count *)(uintptr_t)table_find(&t->table, key, is_same, &want);

	if (!c) {
		if (t->table.count >= WINDOW_COUNTS_MAX)
			return false;
		c = arena_alloc(&t->arena, sizeof(*c));
		if (!c || table_put(&t->table, key, (uintptr_t)c) < 0)
			return false;
		stack_table_ref(stack);
		labels_ref(labels);
		*c = want;
	}
	c->weight += weight;
	return true;
}

int
window_counts_copy(const struct window_counts *from, struct window_counts *to)
{
	const struct window_count *c;

	for (size_t i = 0; i < from->table.size; i++) {
		c = window_counts_at(from, i);
		if (c && !window_counts_add(to, c->stack, c->labels, c->tid, c->weight))
			return -ENOMEM;
	}
	return 0;
}
