/*
 * cache.h - what was found out about addresses, from one request to the next.
 */
#ifndef SYMBOLS_CACHE_H
#define SYMBOLS_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols.h"

#define CACHE_BYTES_MAX ((size_t)4 << 20)       /* what all answers may take; some 30,000 addresses */
#define CACHE_PART      16                      /* and at most this part of the memory for symbols */
#define CACHE_AGE_MAX_S 900                     /* until all is asked anew: somebody may have installed
						* debug information */
#define CACHE_NONE      UINT32_MAX

struct cache;

/* The answers of now, for one request; NULL: nothing is kept.  Any thread. */
struct cache *cache_open(void);
/* Pointers out of it were good until here.  NULL is fine. */
void         cache_close(struct cache *k);
/* The number of an object, by its build id and name; CACHE_NONE without either or room. */
uint32_t     cache_object(struct cache *k, const char *build_id, const char *base);
/* The frames at an offset of its file, as many as max, without .object; 0: not known, or
 * not with lines though they are wanted. */
unsigned     cache_find(struct cache *k, uint32_t object, uint64_t offset, bool lines, struct symbol_frame *frames,
	unsigned max);
/* Keeps a copy, if there is room. */
void         cache_add(struct cache *k, uint32_t object, uint64_t offset, bool lines, const struct symbol_frame *frames,
	unsigned count);

#endif
