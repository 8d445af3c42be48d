/*
 * pages.h - memory from mmap(), never from the daemon's malloc, which may be what is being
 * looked at, or hang.
 *
 * Each mapping is noted with the file that asked for it, so that who looks for the process's
 * memory finds ours and says what it is for.  All of ours comes from here and goes back here.
 *
 * What a stranger would get wrong: where fork may come between, the pointer is taken away
 * first and the memory given back afterwards, or a child has a pointer to nothing.
 *
 *   threads  any; signal-safe, takes no lock
 *   source   libcomponent/base/pages.c
 */
#ifndef BASE_PAGES_H
#define BASE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define PAGES_KEPT 4096 /* mappings that are noted at once: 96 KiB, touched as used */

/* Zeroed; NULL and errno: there is none.  flags: more of mmap()'s. */
void *pages_map_for(const char *file, size_t bytes, int flags);

#define pages_map(bytes) pages_map_for(__FILE__, bytes, 0)
/* The same for what is mostly never touched: it does not count as taken until it is. */
#define pages_map_sparse(bytes) pages_map_for(__FILE__, bytes, MAP_NORESERVE)

/* The same memory for all children of fork(). */
#define pages_map_shared(bytes) pages_map_for(__FILE__, bytes, MAP_SHARED)

/* NULL is fine. */
void  pages_unmap(void *p, size_t bytes);

/* An array of room items, 0 for none yet, becomes one of more.  NULL: it stays as it is. */
void *pages_resize_for(const char *file, void *array, size_t room, size_t more, size_t item);

#define pages_resize(array, room, more, item) pages_resize_for(__FILE__, array, room, more, item)

/* The same, of twice as many, or of first. */
void *pages_grow_for(const char *file, void *array, size_t *room, size_t first, size_t item);

#define pages_grow(array, room, first, item) pages_grow_for(__FILE__, array, room, first, item)

/* One of those that are noted: i from 0 to PAGES_KEPT - 1; bytes, or 0: none there.  *ret_file is
 * the file's name as the compiler was told it. */
size_t pages_noted(unsigned i, uintptr_t *ret_start, const char **ret_file);

/* Above 0 while this thread maps something of ours. */
extern __thread int pages_ours __attribute__((tls_model("initial-exec"), visibility("hidden")));

#endif
