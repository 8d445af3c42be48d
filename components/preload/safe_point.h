/*
 * safe_point.h - may this thread make a thread of ours where it is, in the middle of the program?
 *
 *     safe_point_begin();                               before the program has threads: it asks the loader
 *     safe_point_mask();                                in a child: what its thread blocks from the beginning on
 *     safe_point_is_inside(pc)                          no: the caller there is code that may hold a lock
 *     safe_point_may_be_in_handler()                    no, either
 *
 *   threads  any
 *   signals  safe, but for safe_point_begin(); errno may change
 *   source   components/preload/safe_point.c
 */
#ifndef PRELOAD_SAFE_POINT_H
#define PRELOAD_SAFE_POINT_H

#include <stdbool.h>
#include <stdint.h>

void safe_point_begin(void);
void safe_point_mask(void);

/* Is that an address in the C library, the loader or the allocator?  No system call. */
bool safe_point_is_inside(uintptr_t pc);
bool safe_point_may_be_in_handler(void);

#endif
