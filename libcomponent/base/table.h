/*
 * table.h - a hash table from a number to a number, in memory from mmap.
 *
 * Keys are addresses, ids and hashes.  A key that does not say all is put as often as need be, and
 * table_find() asks its caller which of them is meant.  Open addressing with linear probing; doubles
 * when half full, and goes on to seven eighths where there is no memory to double.
 *
 *   threads  one at a time; no table for handlers and hooks
 *   source   libcomponent/base/table.c
 */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"

struct table_slot {
	uint64_t key, value; /* value 0: free */
};

struct table {
	struct arena_budget *budget;
	struct table_slot   *slots;
	size_t               size, count; /* size is 0 or a power of two */
	uint64_t             seed;
};

/* Whether value is of what its caller looks for; their keys are equal. */
typedef bool table_is_fn(const void *what, uint64_t value);

/* budget NULL: none.  A table of zeros is one without a budget. */
void     table_init(struct table *t, struct arena_budget *budget);
/* 0: it is not there. */
uint64_t table_get(const struct table *t, uint64_t key);
uint64_t table_find(const struct table *t, uint64_t key, table_is_fn *is, const void *what);
/* The value is not 0; what is there of the same key stays.  0 or -ENOMEM. */
int      table_put(struct table *t, uint64_t key, uint64_t value);
/* Returns the value that was there, or 0.  What was pushed further by it moves up. */
uint64_t table_remove(struct table *t, uint64_t key);
/* Of any bytes, for a key.  seed: table_seed() where the bytes are a stranger's, who could make many of one hash; 0
 * where it is to be the same in each process. */
uint64_t table_hash(uint64_t seed, const void *data, size_t size);
uint64_t table_seed(void);
void     table_release(struct table *t);

#endif
