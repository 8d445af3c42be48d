/*
 * ranges.c - lists of address ranges, laid over each other.
 *
 * Tests: tests/memory/test_ranges.c.
 */
#include <config.h>

#include "ranges.h"

#include <errno.h>

#include "pages.h"
#include "sort.h"

int
ranges_add(struct ranges *r, uintptr_t start, uintptr_t limit, int row)
{
	struct range *all;

	if (start >= limit)
		return 0;
	if (r->count == r->room) {
		all = pages_grow(r->all, &r->room, 256, sizeof(*all));
		if (!all)
			return -ENOMEM;
		r->all = all;
	}
	r->all[r->count++] = (struct range){ start, limit, row };
	return 0;
}

static bool
is_before(const struct range *a, const struct range *b)
{
	return a->start < b->start;
}

HEAP_SORT(range_sort, struct range, is_before)

void
ranges_sort(struct ranges *r)
{
	size_t n = 0;

	range_sort(r->all, r->count);
	for (size_t i = 0; i < r->count; i++) {
		struct range at = r->all[i];

		if (n > 0 && at.start < r->all[n - 1].limit)
			at.start = r->all[n - 1].limit;
		if (at.start < at.limit)
			r->all[n++] = at;
	}
	r->count = n;
}

/* What of `at` lies before top[i] and between the following ones. */
static int
add_gaps(struct ranges *to, const struct ranges *top, struct range at)
{
	size_t i = ranges_find(top, at.start);
	int    r = 0;

	while (at.start < at.limit && !r) {
		const struct range *next = i < top->count && top->all[i].start < at.limit ? &top->all[i++] : NULL;

		r = ranges_add(to, at.start, next && next->start < at.limit ? next->start : at.limit, at.row);
		at.start = next ? next->limit : at.limit;
	}
	return r;
}

int
ranges_lay_under(struct ranges *r, struct ranges *below)
{
	size_t count = r->count;
	struct ranges gaps = { NULL, 0, 0 };
	int    err = 0;

	for (size_t i = 0; i < below->count && !err; i++)
		err = add_gaps(&gaps, r, below->all[i]);
	for (size_t i = 0; i < gaps.count && !err; i++)
		err = ranges_add(r, gaps.all[i].start, gaps.all[i].limit, gaps.all[i].row);
	if (r->count > count)
		range_sort(r->all, r->count);
	ranges_release(&gaps);
	ranges_release(below);
	return err;
}

size_t
ranges_find(const struct ranges *r, uintptr_t address)
{
	size_t low = 0, high = r->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (r->all[middle].limit <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void
ranges_release(struct ranges *r)
{
	pages_unmap(r->all, r->room * sizeof(*r->all));
	*r = (struct ranges){ NULL, 0, 0 };
}
