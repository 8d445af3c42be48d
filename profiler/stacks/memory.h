/*
 * memory.h - reading memory of this process that may not be there.
 */
#ifndef STACKS_MEMORY_H
#define STACKS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0 and what memory_read() wants, or a negative errno: there is no way. */
int  memory_open(int *ret_mem);
void memory_close(int mem);
/* False: not all of it is there. */
bool memory_read(int mem, uintptr_t address, void *buf, size_t size);

#endif
