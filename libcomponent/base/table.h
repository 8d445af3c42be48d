/*
 * table.h - a hash table from a number to a number, in memory from mmap.
 *
 * Open addressing with linear probing; doubles when half full.  The
 * value 0 means "not there", so values start at 1.
 */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include <stdint.h>

#include "arena.h"

struct table_slot {
	uint64_t key, value;
};

struct table {
	struct arena_budget *budget;
	struct table_slot   *slots;
	size_t               size, count; /* size is 0 or a power of two */
};

void     table_init(struct table *m, struct arena_budget *budget);
uint64_t table_get(const struct table *m, uint64_t key);
/* key must not be there yet.  0 or -ENOMEM. */
int      table_put(struct table *m, uint64_t key, uint64_t value);
void     table_release(struct table *m);

#endif
