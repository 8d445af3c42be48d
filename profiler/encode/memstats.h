/*
 * memstats.h - the end of a heap's text: Go's "# runtime.MemStats" block.
 */
#ifndef ENCODE_MEMSTATS_H
#define ENCODE_MEMSTATS_H

#include "lines.h"

/* Estimates of the whole process: objects, bytes. */
struct memstats {
	int64_t alloc_objects, alloc_space, inuse_objects, inuse_space;
};

void memstats_print(struct lines *l, const struct memstats *m);

#endif
