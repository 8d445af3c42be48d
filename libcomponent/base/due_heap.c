/*
 * due_heap.c - a binary heap whose items know their places, so that any of them can be taken out.
 *
 * Tests: tests/lifecycle/test_loop.c, tests/controllers/test_queue.c.
 */
#include <config.h>

#include "due_heap.h"

#include <errno.h>
#include <stdlib.h>

#define SIZE_FIRST 8

static void
put(struct due_heap *h, size_t at, struct due *d)
{
	h->items[at] = d;
	d->place = at;
}

/* Moves it up or down until parents are earlier than their children. */
static void
sift(struct due_heap *h, struct due *d)
{
	size_t at = d->place, child;

	for (; at > 1 && h->items[at / 2]->at_ns > d->at_ns; at /= 2)
		put(h, at, h->items[at / 2]);
	for (; (child = at * 2) <= h->count; at = child) {
		if (child < h->count && h->items[child + 1]->at_ns < h->items[child]->at_ns)
			child++;
		if (h->items[child]->at_ns >= d->at_ns)
			break;
		put(h, at, h->items[child]);
	}
	put(h, at, d);
}

int
due_heap_reserve(struct due_heap *h, size_t count)
{
	size_t       size = h->size ? h->size : SIZE_FIRST;
	struct due **items;

	if (count < h->size)
		return 0;
	while (size <= count)
		size *= 2;
	items = realloc(h->items, size * sizeof(*items));
	if (!items)
		return -ENOMEM;
	h->items = items;
	h->size = size;
	return 0;
}

int
due_heap_add(struct due_heap *h, struct due *d, int64_t at_ns)
{
	if (!d->place && due_heap_reserve(h, h->count + 1))
		return -ENOMEM;
	d->at_ns = at_ns;
	if (!d->place)
		put(h, ++h->count, d);
	sift(h, d);
	return 0;
}

void
due_heap_remove(struct due_heap *h, struct due *d)
{
	struct due *last;
	size_t      at = d->place;

	if (!at)
		return;
	d->place = 0;
	last = h->items[h->count--];
	if (last == d)
		return;
	put(h, at, last);
	sift(h, last);
}

struct due *
due_heap_first(const struct due_heap *h)
{
	return h->count ? h->items[1] : NULL;
}
