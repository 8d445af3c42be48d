/*
 * smaps.h - /proc/self/smaps: each mapping, and how many bytes of it are resident.
 *
 *   threads  any; not in handlers or hooks
 *   source   profiler/collect/resident/smaps.c
 */
#ifndef COLLECT_RESIDENT_SMAPS_H
#define COLLECT_RESIDENT_SMAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"

struct smaps_mapping {
	uintptr_t   start, limit;
	uint64_t    offset, resident, swapped; /* the last two in bytes */
	const char *path; /* as the kernel writes it; "" of anonymous memory */
	bool        readable, writable, executable, shared;
};

struct smaps {
	struct smaps_mapping *all; /* by address */
	size_t                count, room;
};

/* Paths are the arena's.  0; -ENOMEM; or why the file cannot be read. */
int  smaps_read(struct smaps *ret, struct arena *paths);
/* The one that has the address; NULL: none. */
const struct smaps_mapping *smaps_find(const struct smaps *s, uintptr_t address);
void smaps_release(struct smaps *s);

/* Resident pages between two addresses, by /proc/self/pagemap: a descriptor for our_fd_close(), or
 * a negative errno. */
int     smaps_pages_open(void);
/* Bytes; -1: not to be had. */
int64_t smaps_pages(int fd, uintptr_t start, uintptr_t limit);

#define SMAPS_WORDS 512 /* read at once: of 2 MiB of memory */

/* For page after page: { .fd = smaps_pages_open() } at first. */
struct smaps_look {
	int       fd;
	uintptr_t start, limit; /* whose words these are */
	size_t    asked;        /* reads so far */
	uint64_t  words[SMAPS_WORDS];
};
/* Is the page with the address resident?  True where that cannot be told. */
bool smaps_is_resident(struct smaps_look *l, uintptr_t address);

#endif
