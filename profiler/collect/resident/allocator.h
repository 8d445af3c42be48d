/*
 * allocator.h - what the program's allocator says of itself, by its public calls.
 *
 * Its figures are of bytes that it holds, resident or not: estimates, each of another moment.
 *
 *   source   profiler/collect/resident/allocator.c, malloc_info.c
 */
#ifndef COLLECT_RESIDENT_ALLOCATOR_H
#define COLLECT_RESIDENT_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALLOCATOR_ARENAS_MAX 1024 /* told apart; glibc makes eight for each processor */

struct allocator_arena {
	uint64_t system;   /* bytes that it has from the kernel */
	uint64_t free;     /* of these; what threads keep for themselves counts as in use */
	uint64_t loose;    /* of these, in whole pages that malloc_trim() would give back at least */
};

/* Never below 0: glibc adds up what is free with the arena's lock, and reads what it has from the kernel
 * after it, when some of that may have gone back. */
static inline uint64_t
allocator_arena_in_use(const struct allocator_arena *a)
{
	return a->system > a->free ? a->system - a->free : 0;
}

struct allocator {
	const char *name;         /* constant; "": none that is known */
	uint64_t    in_use, free; /* bytes of all arenas, those of large blocks too */
	uint64_t    resident;     /* bytes that may be resident, at most; 0: by its mappings alone */
	/* glibc's. */
	uint64_t    mapped;       /* bytes of blocks with a mapping of their own */
	unsigned    arena_count;  /* 0 is the main one */
	struct allocator_arena arenas[ALLOCATOR_ARENAS_MAX];
};

/* Code of an allocator other than glibc's, by which its object is known; NULL: none. */
const void *allocator_code(void);

#define ALLOCATOR_WAIT_S 1

/*
 * allocator_ask - asks on a thread of ours, for an answer may have to wait for an arena's lock
 *
 * That thread is left behind after ALLOCATOR_WAIT_S; until it is back nobody is asked again.
 *
 * Who it is, *ret says in any case.
 *
 *   returns  0; -EBUSY: it is left behind, or still is; or a negative errno: no thread
 *   threads  any of ours, several at once; not in a handler or a hook
 *   fork     a child has no such thread, and may ask anew
 */
int  allocator_ask(struct allocator *ret);
/* With a server, before somebody asks: what has to be allocated for that is. */
void allocator_prepare(void);

/* malloc_info.c: glibc's figures; false: this is not glibc's malloc. */
bool malloc_info_ask(struct allocator *ret);
/* Is this a C library that has them? */
bool malloc_info_is_there(void);
void malloc_info_prepare(void);

#endif
