/*
 * order.c - sorting numbers by what they stand for: in place, or those below a count.
 *
 * Tests: tests/encode/test_text.c
 */
#include <config.h>

#include "order.h"

#include "sort.h"

struct order {
	order_before_fn *before;
	const void      *arg;
};

static bool
is_before(const struct order *o, const uint32_t *a, const uint32_t *b)
{
	return o->before(o->arg, *a, *b);
}

HEAP_SORT_WITH(sort, uint32_t, const struct order *, is_before)

void
order_sort(uint32_t *items, size_t count, order_before_fn *before, const void *arg)
{
	sort(items, count, &(struct order){ before, arg });
}

uint32_t *
order_of(struct arena *a, size_t count, order_before_fn *before, const void *arg)
{
	uint32_t *items = arena_array(a, count + 1, sizeof(*items));

	for (size_t i = 0; items && i < count; i++)
		items[i] = (uint32_t)i;
	if (items)
		order_sort(items, count, before, arg);
	return items;
}
