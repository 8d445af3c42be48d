/*
 * debugdata.h - the small symbol table that distributions pack into .gnu_debugdata.
 */
#ifndef SYMBOLS_DEBUGDATA_H
#define SYMBOLS_DEBUGDATA_H

#include "arena.h"
#include "image.h"

#define DEBUGDATA_MEMORY_MAX ((uint64_t)16 << 20) /* bytes xz may use; its presets up to -6 need 9 MiB */
#define DEBUGDATA_SIZE_MAX   ((size_t)16 << 20)   /* bytes unpacked; real ones have some 100 KiB */

/* Before the first view, not in a handler: loads liblzma, without which packed tables are left out.
 * Only the first call does anything.  Takes the loader's lock. */
void debugdata_prepare(void);
/* Unpacks into the arena, which must outlive the image.  -ENOENT without one, -ENOSYS where
 * what unpacks was not loaded. */
int debugdata_open(const struct image *img, struct arena *a, struct image *ret);

#endif
