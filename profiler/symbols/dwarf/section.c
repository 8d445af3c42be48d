/*
 * section.c - the sections of debug information, unpacked or piece by piece.
 *
 * Three forms on disk: as they are; compressed under SHF_COMPRESSED, with a header of
 * ELF's own; and .zdebug_*, the older way.  What is compressed is unpacked whole into
 * the arena, after its claimed size was counted against the budget.  What is not is
 * kept whole when it is small; else each unit is read when its turn comes, so that a
 * program with 500 MB of debug information costs no more than its largest unit.
 *
 * What a stranger would get wrong: nothing is mapped (see image.c), and zlib gets its
 * memory from the arena too, not from malloc.
 *
 * Tests: tests/symbols/test_dwarf.c, tests/symbols/lines.t
 */
#include <config.h>

#include "section.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define IN_BYTES     ((size_t)32 << 10) /* of the file, unpacked at once */
#define RESIDENT_MAX ((uint64_t)12 << 20) /* bytes of one section that are read whole */
#define RESIDENT_PART 4 /* and no more of what the budget has left than a quarter */
#define STRING_MAX   4096 /* bytes of a name or path; the rest is cut */
#define UNPACKED_MAX ((uint64_t)1 << 31) /* bytes; what zlib counts in one number */

static int
inflate_all(z_stream *z, unsigned char *in, const struct image *img, uint64_t at, uint64_t left)
{
	int status = Z_OK;

	while (status == Z_OK && z->avail_out) {
		if (!z->avail_in && left) {
			size_t n = left < IN_BYTES ? (size_t)left : IN_BYTES;
			int    r = image_read(img, at, in, n);

			if (r < 0)
				return r;
			at += n;
			left -= n;
			z->next_in = in;
			z->avail_in = (unsigned)n;
		}
		status = inflate(z, Z_NO_FLUSH);
	}
	return z->avail_out || (status != Z_OK && status != Z_STREAM_END) ? -ENOEXEC : 0;
}

static int
unpack(struct dwarf_section *s, struct arena *a, const struct image *img, uint64_t at, uint64_t packed, uint64_t size)
{
	struct arena   scratch;
	z_stream       z = { .zalloc = arena_zalloc, .zfree = arena_keep, .opaque = &scratch };
	unsigned char *out, *in;
	int            r = -ENOMEM;

	if (size > UNPACKED_MAX)
		return -ENOMEM;
	arena_init(&scratch, a->budget);
	out = arena_alloc(a, (size_t)size + 1);
	in = arena_alloc(&scratch, IN_BYTES);
	if (!out || !in || inflateInit(&z) != Z_OK)
		goto out;
	z.next_out = out;
	z.avail_out = (unsigned)size;
	r = size ? inflate_all(&z, in, img, at, packed) : 0;
	inflateEnd(&z);
	if (!r) {
		s->data = out;
		s->size = size;
	}
out:
	arena_release(&scratch);
	return r;
}

static int
open_plain(struct dwarf_section *s, struct arena *a, const struct image *img, const ElfW(Shdr) *h)
{
	uint64_t left = a->budget->limit - a->budget->used;

	if (h->sh_offset > img->size || h->sh_size > img->size - h->sh_offset)
		return -ENOEXEC;
	s->size = h->sh_size;
	if (img->data) {
		s->data = img->data + h->sh_offset;
		return 0;
	}
	if (h->sh_size <= RESIDENT_MAX && h->sh_size <= left / RESIDENT_PART) {
		unsigned char *p = arena_alloc(a, (size_t)h->sh_size + 1);

		s->data = p;
		return p ? image_read(img, h->sh_offset, p, (size_t)h->sh_size) : -ENOMEM;
	}
	s->image = img;
	s->offset = h->sh_offset;
	s->window = arena_alloc(a, DWARF_WINDOW);
	return s->window ? 0 : -ENOMEM;
}

static int
open_compressed(struct dwarf_section *s, struct arena *a, const struct image *img, const ElfW(Shdr) *h)
{
	ElfW(Chdr) c;
	int        r;

	if (h->sh_size < sizeof(c))
		return -ENOEXEC;
	r = image_read(img, h->sh_offset, &c, sizeof(c));
	if (r < 0)
		return r;
	if (c.ch_type != ELFCOMPRESS_ZLIB)
		return -ENOTSUP;
	return unpack(s, a, img, h->sh_offset + sizeof(c), h->sh_size - sizeof(c), c.ch_size);
}

/* "ZLIB", the size with the most significant byte first, the stream. */
static int
open_zdebug(struct dwarf_section *s, struct arena *a, const struct image *img, const ElfW(Shdr) *h)
{
	struct {
		char     magic[4];
		uint32_t high, low;
	} head;
	int r;

	if (h->sh_size < sizeof(head))
		return -ENOEXEC;
	r = image_read(img, h->sh_offset, &head, sizeof(head));
	if (r < 0)
		return r;
	if (memcmp(head.magic, "ZLIB", 4))
		return -ENOEXEC;
	return unpack(s, a, img, h->sh_offset + sizeof(head), h->sh_size - sizeof(head),
		(uint64_t)be32toh(head.high) << 32 | be32toh(head.low));
}

int
dwarf_section_open(struct dwarf_section *s, struct arena *a, const struct image *img, const char *name)
{
	char       text[32];
	ElfW(Shdr) h;
	int        r;

	*s = (struct dwarf_section){ .data = NULL };
	snprintf(text, sizeof(text), ".debug_%s", name);
	r = image_section_find(img, text, &h);
	if (!r)
		r = h.sh_flags & SHF_COMPRESSED ? open_compressed(s, a, img, &h) : open_plain(s, a, img, &h);
	if (r == -ENOENT) {
		snprintf(text, sizeof(text), ".zdebug_%s", name);
		r = image_section_find(img, text, &h);
		if (!r)
			r = open_zdebug(s, a, img, &h);
	}
	if (r < 0)
		s->size = 0;
	return r == -ENOENT ? 0 : r;
}

const unsigned char *
dwarf_section_view(struct dwarf_section *s, uint64_t offset, uint64_t want, size_t *ret_size)
{
	size_t n;

	*ret_size = 0;
	if (offset >= s->size || !want)
		return NULL;
	if (want > s->size - offset)
		want = s->size - offset;
	if (s->data) {
		*ret_size = (size_t)want;
		return s->data + offset;
	}
	if (want > DWARF_WINDOW)
		want = DWARF_WINDOW;
	if (offset < s->window_at || offset - s->window_at > s->window_size ||
	    s->window_size - (offset - s->window_at) < want) {
		n = s->size - offset < DWARF_WINDOW ? (size_t)(s->size - offset) : DWARF_WINDOW;
		s->window_size = 0;
		if (image_read(s->image, s->offset + offset, s->window, n) < 0)
			return NULL;
		s->window_at = offset;
		s->window_size = n;
	}
	*ret_size = (size_t)want;
	return s->window + (offset - s->window_at);
}

const unsigned char *
dwarf_section_piece(struct dwarf_section *s, struct arena *a, uint64_t offset, uint64_t size)
{
	unsigned char *p;

	if (offset > s->size || size > s->size - offset || !s->size)
		return NULL;
	if (s->data)
		return s->data + offset;
	if (size > a->budget->limit)
		return NULL;
	p = arena_alloc(a, (size_t)size + 1);
	return p && image_read(s->image, s->offset + offset, p, (size_t)size) >= 0 ? p : NULL;
}

const char *
dwarf_section_string(struct dwarf_section *s, uint64_t offset, size_t *ret_size)
{
	size_t      n = 0;
	const void *p = dwarf_section_view(s, offset, STRING_MAX, &n);

	if (p)
		*ret_size = strnlen(p, n);
	return p;
}
