/*
 * memory.h - reading memory of the process that is looked at (process.h), which may not be there.
 */
#ifndef MODEL_MEMORY_H
#define MODEL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "our_fd.h"

struct memory {
	/* A pair of sockets; or /proc/thread-self/mem, not looked at again, and none; both none: by a call. */
	struct our_fd_kept from, to;
};

/* 0 and what memory_read() wants, or a negative errno: there is no way. */
int  memory_open(struct memory *ret);
void memory_close(struct memory *m);
/* False: not all of it is there. */
bool memory_read(const struct memory *m, uintptr_t address, void *buf, size_t size);
/* Up to the first page that is not there; bytes. */
size_t memory_read_some(const struct memory *m, uintptr_t address, void *buf, size_t size);
/* Whether process_vm_readv(2) is refused to the calling thread; asked anew each time. */
bool memory_call_refused(void);

/* For tests: as where neither the file nor the call is to be had. */
void memory_refuse(bool refuse);

#endif
