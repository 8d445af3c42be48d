/*
 * idmap.h - a hash table from a number to a number, in memory from mmap.
 *
 * Open addressing with linear probing; doubles when three quarters full.  The
 * value 0 means "not there", so values start at 1.
 */
#ifndef SYMBOLS_IDMAP_H
#define SYMBOLS_IDMAP_H

#include <stdint.h>

#include "arena.h"

struct idmap_slot {
	uint64_t key, value;
};

struct idmap {
	struct arena_budget *budget;
	struct idmap_slot   *slots;
	size_t               size, count; /* size is 0 or a power of two */
};

void     idmap_init(struct idmap *m, struct arena_budget *budget);
uint64_t idmap_get(const struct idmap *m, uint64_t key);
/* key must not be there yet.  0 or -ENOMEM. */
int      idmap_put(struct idmap *m, uint64_t key, uint64_t value);
void     idmap_release(struct idmap *m);

#endif
