/*
 * threads_parts.h - what the tests of threads.c reach for.
 */
#ifndef COLLECT_THREADS_PARTS_H
#define COLLECT_THREADS_PARTS_H

#include <stdint.h>

/* The clock that minutes are told by: monotonic, unless a test brings its own. */
extern int64_t (*threads_clock_ns)(void);

#endif
