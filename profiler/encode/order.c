/*
 * order.c - sorting numbers by what they stand for, in place.
 *
 * A heap sort: needs no memory and no recursion, where qsort() may use both.
 *
 * Tests: tests/test_encode_text.c
 */
#include <config.h>

#include "order.h"

/* Puts item where it belongs below the hole at i; a parent comes after its children. */
static void
sift(uint32_t *items, size_t count, size_t i, uint32_t item, order_before_fn *before, const void *arg)
{
	for (size_t child; (child = 2 * i + 1) < count; i = child) {
		if (child + 1 < count && before(arg, items[child], items[child + 1]))
			child++;
		if (!before(arg, item, items[child]))
			break;
		items[i] = items[child];
	}
	items[i] = item;
}

void
order_sort(uint32_t *items, size_t count, order_before_fn *before, const void *arg)
{
	for (size_t i = count / 2; i--;)
		sift(items, count, i, items[i], before, arg);
	while (count > 1) {
		uint32_t last = items[--count];

		items[count] = items[0];
		sift(items, count, 0, last, before, arg);
	}
}
