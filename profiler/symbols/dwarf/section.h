/*
 * section.h - the sections of debug information, unpacked or piece by piece.
 */
#ifndef SYMBOLS_DWARF_SECTION_H
#define SYMBOLS_DWARF_SECTION_H

#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "image.h"

struct dwarf_section {
	const unsigned char *data;   /* all of it; NULL: read from the image */
	uint64_t             size;
	const struct image  *image;
	uint64_t             offset; /* in the image */
	unsigned char       *window; /* the piece read last */
	uint64_t             window_at;
	size_t               window_size;
};

#define DWARF_WINDOW ((size_t)16 << 10) /* bytes one view shows at most of what is not in memory */

/* name without ".debug_".  The image must live as long as the section.  0, also when
 * there is none (its size is 0 then); -ENOMEM: over the limit; -ENOTSUP: packed in a
 * way we do not know; or another negative errno. */
int dwarf_section_open(struct dwarf_section *s, struct arena *a, const struct image *img, const char *name);
/* The bytes from offset on: want of them, or as many as there are, or DWARF_WINDOW.
 * Good until the next view of the same section; NULL and 0 when there are none. */
const unsigned char *dwarf_section_view(struct dwarf_section *s, uint64_t offset, uint64_t want, size_t *ret_size);
/* All of the bytes, in memory of the arena if they are not in memory yet; NULL: not
 * in the section, or no room. */
const unsigned char *dwarf_section_piece(struct dwarf_section *s, struct arena *a, uint64_t offset, uint64_t size);
/* A string with its length, without the NUL; as a view. */
const char *dwarf_section_string(struct dwarf_section *s, uint64_t offset, size_t *ret_size);

#endif
