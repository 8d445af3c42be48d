/*
 * legacy.h - profiles as gperftools and jemalloc write them: addresses and a list of mappings, no names.
 *
 *     gperftools   CPUPROFILE=: words of 32 or 64 bits    HEAPPROFILE=: "heap profile: ..."    "--- contentionz 1 ---"
 *     jemalloc     MALLOC_CONF=prof:true: "heap_v2/524288"
 *
 * Read by read_profile(), which knows them by their first bytes.
 *
 *   limits   those of read.h
 *   threads  one at a time for one struct pprof
 *   source   components/componentctl/files/legacy/
 */
#ifndef COMPONENTCTL_LEGACY_H
#define COMPONENTCTL_LEGACY_H

#include "read.h"

bool legacy_is(const void *data, size_t size);
/* ret has its arena, and nothing else.  0; -EINVAL, -EFBIG, -ENOMEM: and err is a sentence without its subject. */
int  legacy_read(const void *data, size_t size, struct pprof *ret, struct component_error *err);

#endif
