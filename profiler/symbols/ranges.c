/*
 * ranges.c - where functions begin and end, of an object that does not name them all.
 *
 * A stripped library exports its interface; what does the work is local and has no
 * name left: memmove's variants for each processor, the inside of malloc.  Were each
 * address called by its own number, one hot function would be a hundred cold lines.
 * But .eh_frame stays in stripped files, and has the beginning and the length of every
 * function, so an address can be called by its function's beginning.
 *
 * The section is a row of records, each with its length in front: a CIE says how
 * addresses are written, an FDE names its CIE and gives the range.  Only the heads are
 * read; the rules for unwinding in them are not looked at.
 *
 * Why not the sorted table in .eh_frame_hdr: it has no lengths, so that code without
 * an entry would go to whatever function is below it.
 *
 * Tests: tests/symbols/names.t, tests/symbols/test_hostile.c
 */
#include <config.h>

#include "ranges.h"

#include <errno.h>
#include <string.h>

#define WINDOW     ((size_t)64 << 10)   /* bytes of the section read at once */
#define HEAD_MAX   ((size_t)64)         /* bytes of a record looked at; an FDE's head has 24 */
#define BYTES_MAX  ((uint64_t)64 << 20) /* of the section; libLLVM has 8 MiB */
#define CIES       4
#define RECORD_MIN 12                   /* length, id, and something */
#define FDE_MIN    16                   /* length, CIE, beginning and length of code */

/* How addresses are written; of the many ways of DWARF compilers use three. */
#define POINTER_ABSOLUTE   0x00
#define POINTER_RELATIVE_4 0x1b
#define POINTER_RELATIVE_8 0x1c
#define POINTER_UNKNOWN    0xff

struct ranges {
	const struct image  *image;
	ElfW(Shdr)           section;
	unsigned char       *window;
	uint64_t             from; /* what of the section is in the window */
	size_t               have;
	struct {
		uint64_t at; /* UINT64_MAX: none */
		unsigned encoding;
	} cies[CIES]; /* the last ones: functions with and without exceptions alternate */
	unsigned             next_cie;
	struct symtab_entry *entries;
	size_t               count, room;
};

/* Bytes of the section at an offset, as many as a head needs or there are. */
static const unsigned char *
peek(struct ranges *r, uint64_t at, size_t *ret_size)
{
	uint64_t left = at < r->section.sh_size ? r->section.sh_size - at : 0;
	size_t   want = left < HEAD_MAX ? (size_t)left : HEAD_MAX;

	if (at < r->from || at + want > r->from + r->have) {
		size_t n = left < WINDOW ? (size_t)left : WINDOW;

		if (image_read(r->image, r->section.sh_offset + at, r->window, n) < 0)
			n = 0;
		r->from = at;
		r->have = n;
		want = n < want ? n : want;
	}
	*ret_size = want;
	return r->window + (at - r->from);
}

static uint32_t
u32(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Steps over a number of DWARF's variable length; NULL at the end. */
static const unsigned char *
skip_number(const unsigned char *p, const unsigned char *end)
{
	while (p && p < end && *p & 128)
		p++;
	return p && p < end ? p + 1 : NULL;
}

/* A CIE: length, 0, version, "zPLR" in some order, two or three numbers, their data. */
static unsigned
cie_encoding(const unsigned char *p, size_t size)
{
	const unsigned char *end = p + size, *letters = p + 9, *data;

	if (size < RECORD_MIN || u32(p + 4) || (p[8] != 1 && p[8] != 3))
		return POINTER_UNKNOWN;
	data = memchr(letters, '\0', (size_t)(end - letters));
	if (!data)
		return POINTER_UNKNOWN;
	if (*letters != 'z')
		return *letters ? POINTER_UNKNOWN : POINTER_ABSOLUTE;
	data = skip_number(data + 1, end); /* code alignment */
	data = skip_number(data, end);     /* data alignment */
	data = skip_number(data, end);     /* return address register */
	data = skip_number(data, end);     /* length of the augmentation */
	for (letters++; *letters && data && data < end; letters++) {
		if (*letters == 'R')
			return *data;
		if (*letters == 'L')
			data++;
		else if (*letters == 'P')
			data += 1 + ((*data & 7) == 4 || !(*data & 7) ? 8 : (*data & 7) == 3 ? 4 : 2);
		else if (*letters != 'S' && *letters != 'B')
			return POINTER_UNKNOWN;
	}
	return *letters ? POINTER_UNKNOWN : POINTER_ABSOLUTE;
}

static unsigned
encoding_of(struct ranges *r, uint64_t cie)
{
	uint64_t      left = cie < r->section.sh_size ? r->section.sh_size - cie : 0;
	size_t        size = left < HEAD_MAX ? (size_t)left : HEAD_MAX;
	unsigned char head[HEAD_MAX]; /* apart, as it lies far before the window */
	unsigned      i;

	for (i = 0; i < CIES; i++)
		if (r->cies[i].at == cie)
			return r->cies[i].encoding;
	i = r->next_cie++ % CIES;
	r->cies[i].at = cie;
	r->cies[i].encoding = image_read(r->image, r->section.sh_offset + cie, head, size) < 0 ? POINTER_UNKNOWN :
		cie_encoding(head, size);
	return r->cies[i].encoding;
}

static int
add(struct ranges *r, uint64_t start, uint64_t size)
{
	if (!size || size > UINT32_MAX || start >> 48 || !image_is_code(r->image, start))
		return 0;
	if (r->count == r->room)
		return -EIO; /* records that overlap: not from a linker */
	r->entries[r->count++] = (struct symtab_entry){ .key = start << 16, .size = (uint32_t)size };
	return 0;
}

/* An FDE at an offset: length, distance back to its CIE, beginning, length of code. */
static int
fde(struct ranges *r, uint64_t at, uint32_t back)
{
	uint64_t             here = r->section.sh_addr + at + 8, start;
	unsigned             encoding = at + 4 >= back ? encoding_of(r, at + 4 - back) : POINTER_UNKNOWN;
	size_t               size;
	const unsigned char *p = peek(r, at, &size);
	int64_t              distance;

	if (encoding == POINTER_RELATIVE_4 && size >= 16) {
		start = here + (uint64_t)(int64_t)(int32_t)u32(p + 8);
		return add(r, start, u32(p + 12));
	}
	if ((encoding == POINTER_RELATIVE_8 || (encoding == POINTER_ABSOLUTE && sizeof(void *) == 8)) && size >= 24) {
		uint64_t length;

		memcpy(&distance, p + 8, sizeof(distance));
		memcpy(&length, p + 16, sizeof(length));
		start = (encoding == POINTER_RELATIVE_8 ? here : 0) + (uint64_t)distance;
		return add(r, start, length);
	}
	return 0;
}

static int
scan(struct ranges *r)
{
	int e = 0;

	for (unsigned i = 0; i < CIES; i++)
		r->cies[i].at = UINT64_MAX;
	for (uint64_t at = 0; !e;) {
		size_t               size;
		const unsigned char *p = peek(r, at, &size);
		uint32_t             length, back;

		/* Too short to go on with, the end, or of more than 4 GiB. */
		if (size < RECORD_MIN || !(length = u32(p)) || length == UINT32_MAX)
			break;
		back = u32(p + 4);
		if (back)
			e = fde(r, at, back);
		at += (uint64_t)length + 4;
	}
	return e;
}

int
ranges_build(struct symtab *t, struct arena *a, const struct image *img)
{
	struct ranges r = { .image = img };
	struct arena  scratch;
	int           e = image_section_find(img, ".eh_frame", &r.section);

	if (e < 0 || r.section.sh_size > BYTES_MAX)
		return -ENOENT;
	arena_init(&scratch, a->budget);
	r.room = (size_t)r.section.sh_size / FDE_MIN + 1;
	r.window = arena_alloc(&scratch, WINDOW);
	r.entries = arena_array(&scratch, r.room, sizeof(*r.entries));
	e = r.window && r.entries ? scan(&r) : -ENOMEM;
	if (!e && !r.count)
		e = -ENOENT;
	if (!e)
		e = symtab_take(t, a, r.entries, r.count);
	arena_release(&scratch);
	return e;
}
