/*
 * kept.h - what was found out about addresses, from one request to the next.
 */
#ifndef SYMBOLS_KEPT_H
#define SYMBOLS_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols.h"

#define KEPT_BYTES_MAX ((size_t)4 << 20)       /* what all answers may take; some 30,000 addresses */
#define KEPT_PART      16                      /* and at most this part of the memory for symbols */
#define KEPT_AGE_MAX_S 900                     /* until all is asked anew: somebody may have installed
						* debug information */
#define KEPT_NONE      UINT32_MAX

struct kept;

/* The answers of now, for one request; NULL: nothing is kept.  Any thread. */
struct kept *kept_open(void);
/* Pointers out of it were good until here.  NULL is fine. */
void         kept_close(struct kept *k);
/* The number of an object, by its build id and name; KEPT_NONE without either or room. */
uint32_t     kept_object(struct kept *k, const char *build_id, const char *base);
/* The frames at an offset of its file, as many as max, without .object; 0: not known, or
 * not with lines though they are wanted. */
unsigned     kept_find(struct kept *k, uint32_t object, uint64_t offset, bool lines, struct symbol_frame *frames,
	unsigned max);
/* Keeps a copy, if there is room. */
void         kept_add(struct kept *k, uint32_t object, uint64_t offset, bool lines, const struct symbol_frame *frames,
	unsigned count);

#endif
