/*
 * ranges.h - which addresses are whose: ranges with the number of their row.
 *
 * The kernel makes one mapping of neighbours that look alike, whoever made them: what smaps shows
 * as one is cut up again by these.
 */
#ifndef COLLECT_RESIDENT_RANGES_H
#define COLLECT_RESIDENT_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct range {
	uintptr_t start, limit;
	int       row;
};

struct ranges {
	struct range *all;
	size_t        count, room;
};

/* 0 or -ENOMEM.  An empty range is none. */
int  ranges_add(struct ranges *r, uintptr_t start, uintptr_t limit, int row);
/* By address, none over another: what overlaps in one list is the earlier one's. */
void ranges_sort(struct ranges *r);
/* Both sorted: adds what of `below` lies in none of r, which stays sorted; `below` is released.
 * 0 or -ENOMEM. */
int  ranges_lay_under(struct ranges *r, struct ranges *below);
/* The first range that ends above the address: its place, or count. */
size_t ranges_find(const struct ranges *r, uintptr_t address);
void ranges_release(struct ranges *r);

#endif
