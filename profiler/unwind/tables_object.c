/*
 * tables_object.c - the unwind rows of one loaded object, from its memory.
 *
 * .eh_frame_hdr's search table gives the descriptions in order (tables_sections.c finds
 * it, or makes one); cfi.c runs them, and the rows are packed into one mapping: an index
 * by pages of 256 bytes, then rows of pc and code.
 *
 * What a stranger would get wrong:
 * - Everything is read through /proc/self/mem, since dlclose may take the object away
 *   at any moment: that costs its rows and nothing else.
 * - An address range can be used again by another object, so an object counts as the
 *   same only if its .eh_frame_hdr, or its first page, reads the same too.
 *
 * Tests: tests/unwind/test_tables.c, tests/unwind/test_refresh.c.
 */
#include <config.h>

#include "tables_lookup.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "memory.h"
#include "pages.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define ROWS_FIRST 8192 /* 64 KiB */
#define WORTH_TABLES ((size_t)4096) /* bytes of code; less is a data library's _init and _fini */

/* Room for a section's copy, with what was in it before; NULL: there is none. */
static void *
copy_room(struct tables_copy *c, size_t size)
{
	if (size <= c->size)
		return c->bytes;
	tables_copy_release(c);
	c->bytes = pages_map(size);
	c->size = c->bytes ? size : 0;
	/* All of it is about to be written: few large pages where they are allowed, and one call
	 * instead of a fault for each.  Older kernels know neither. */
	if (c->bytes) {
		madvise(c->bytes, size, MADV_HUGEPAGE);
		madvise(c->bytes, size, MADV_POPULATE_WRITE);
	}
	return c->bytes;
}

void
tables_copy_release(struct tables_copy *c)
{
	if (c->size)
		munmap(c->bytes, c->size);
	*c = (struct tables_copy){ NULL, 0 };
}

/* ---- rows that grow ---- */

/* The mapping that will be the object's: its index, whose size is known, then rows. */
struct row_sink {
	uintptr_t                 start, size; /* the code */
	const struct cfi_section *frames;
	uint32_t                 *index;
	struct tables_row        *rows, *next, *end;
	uintptr_t                 least;     /* where the next row may begin: behind the last one */
	uint32_t                  last_code; /* the last row's */
	size_t                    pages, map_bytes;
	struct cfi_rule           saved[3]; /* of the row before: fp, base, ra ... */
	uint32_t                  saved_code; /* ... and what they come to */
	struct cfi_row            odd; /* the last one that was not plain */
	uint32_t                  odd_code;
	bool                      any_odd;
};

#define NO_CODE UINT32_MAX /* more than a code has bits */

static size_t
sink_count(const struct row_sink *s)
{
	return (size_t)(s->next - s->rows);
}

static void
sink_place(struct row_sink *s, void *mapping, size_t count, size_t room)
{
	s->index = mapping;
	s->rows = (struct tables_row *)(void *)(s->index + s->pages);
	s->next = s->rows + count;
	s->end = s->rows + room;
}

static int
sink_start(struct row_sink *s)
{
	void *p;

	s->pages = ((s->size - 1) >> TABLES_PAGE_SHIFT) + 2;
	s->pages += s->pages % 2; /* rows are aligned to their size */
	s->map_bytes = s->pages * sizeof(*s->index) + ROWS_FIRST * sizeof(*s->rows);
	s->last_code = NO_CODE;
	p = pages_map(s->map_bytes);
	if (!p)
		return -ENOMEM;
	sink_place(s, p, 0, ROWS_FIRST);
	return 0;
}

static __attribute__((noinline)) int
sink_resize(struct row_sink *s, size_t room)
{
	size_t bytes = s->pages * sizeof(*s->index) + room * sizeof(*s->rows);
	void  *p = pages_resize(s->index, s->map_bytes, bytes, 1);

	if (!p)
		return -ENOMEM;
	sink_place(s, p, sink_count(s), room);
	s->map_bytes = bytes;
	return 0;
}

/* A description that turned out damaged is taken back to where it began. */
static void
sink_take_back(struct row_sink *s, uintptr_t at)
{
	while (s->next > s->rows && s->next[-1].pc >= at)
		s->next--;
	s->last_code = s->next > s->rows ? s->next[-1].code : NO_CODE;
}

/* Of rules that are not plain; neighbours are often alike. */
static uint32_t
row_code(struct row_sink *s, const struct cfi_row *row)
{
	if (row->cfa.kind == CFI_UNKNOWN)
		return TABLES_CODE_NONE;
	if (s->any_odd && memcmp(&s->odd, row, sizeof(*row)) == 0)
		return s->odd_code;
	memcpy(&s->odd, row, sizeof(*row));
	s->odd_code = tables_palette_add(row, s->frames);
	s->any_odd = true;
	return s->odd_code;
}

static inline void
row_put(struct row_sink *s, uintptr_t at, uint32_t code)
{
	*s->next++ = (struct tables_row){ (uint32_t)at, code };
	s->least = at + 1;
	s->last_code = code;
}

/* One that is not plain, or not behind the last one, or finds no room. */
static __attribute__((noinline)) int
row_add_odd(struct row_sink *s, uintptr_t at, const struct cfi_row *row, uint32_t code)
{
	if (code == TABLES_CODE_NONE)
		code = row_code(s, row);
	if (at < s->least)
		sink_take_back(s, at);
	if (code == s->last_code)
		return 0;
	if (s->next == s->end && sink_resize(s, sink_count(s) * 2) < 0)
		return -ENOMEM;
	row_put(s, at, code);
	return 0;
}

static int
row_add(void *arg, uintptr_t pc, const struct cfi_row *row)
{
	struct row_sink *s = arg;
	uintptr_t        at = pc - s->start;
	uint32_t         code;

	_Static_assert(offsetof(struct cfi_row, ra) + sizeof(row->ra) == offsetof(struct cfi_row, fp) + sizeof(s->saved),
		       "fp, base and ra lie side by side");
	if (at >= s->size)
		return 0;
	/* From one row to the next often the CFA alone is another. */
	if (memcmp(s->saved, &row->fp, sizeof(s->saved)) != 0) {
		memcpy(s->saved, &row->fp, sizeof(s->saved));
		s->saved_code = tables_code_saved(row);
	}
	code = tables_code_plain(row, s->saved_code);
	if (__builtin_expect(code == TABLES_CODE_NONE || at < s->least || s->next == s->end, 0))
		return row_add_odd(s, at, row, code);
	if (code != s->last_code)
		row_put(s, at, code);
	return 0;
}

/* pages[i]: how many rows start at or before the first byte of page i */
static void
index_fill(const struct row_sink *s)
{
	size_t page = 0, count = sink_count(s);

	for (size_t row = 0; row < count; row++)
		for (size_t to = (s->rows[row].pc + (1U << TABLES_PAGE_SHIFT) - 1) >> TABLES_PAGE_SHIFT; page < to; page++)
			s->index[page] = (uint32_t)row;
	for (; page < s->pages; page++)
		s->index[page] = (uint32_t)count;
}

/* One mapping with index and rows of the object, as long as it has to be. */
static void
object_pack(struct tables_object *o, struct row_sink *s)
{
	sink_resize(s, sink_count(s)); /* or it stays as it is */
	index_fill(s);
	o->map_bytes = s->map_bytes;
	o->pages = s->index;
	o->rows = s->rows;
	o->count = (uint32_t)sink_count(s);
}

static int
object_rows(struct tables_object *o, const struct cfi_section *header, const struct cfi_section *frames)
{
	struct row_sink sink = { .start = o->start, .size = o->end - o->start, .frames = frames };
	size_t          extent = 0;
	int             err = sink_start(&sink);

	if (!err)
		err = cfi_parse(header, frames, row_add, &sink, &o->bad, &extent);
	if (!err)
		object_pack(o, &sink);
	else
		pages_unmap(sink.index, sink.map_bytes);
	o->frames_bytes = header->size + extent;
	return err;
}

/* header_copy: of .eh_frame_hdr, NULL if there is none with a search table. */
static int
object_read(const struct memory *mem, struct tables_object *o, const void *header_copy, struct tables_copy *copy)
{
	struct cfi_section header = { header_copy, o->header_size, o->header };
	struct cfi_section frames = { copy_room(copy, o->frames_size), o->frames_size, o->frames };
	int                err;

	if (!frames.data)
		return -ENOMEM;
	if (!memory_read(mem, o->frames, (void *)(uintptr_t)frames.data, frames.size))
		return -EIO;
	if (!header_copy) {
		err = tables_search_make(&frames, &o->made);
		if (err)
			return err;
		header = (struct cfi_section){ o->made.bytes, o->made.size, o->frames };
		o->header = (uintptr_t)o->made.bytes;
		o->header_size = o->made.size;
	}
	o->header_base = header.address;
	return object_rows(o, &header, &frames);
}

void
tables_object_release(struct tables_object *o)
{
	if (--o->users > 0)
		return;
	if (o->pages)
		munmap((void *)(uintptr_t)o->pages, o->map_bytes);
	tables_copy_release(&o->made);
	munmap(o, sizeof(*o));
}

static bool
is_known(const struct tables_object *o, const struct maps_line *line, uint64_t identity)
{
	return o && o->start == line->start && o->end == line->limit && o->identity == identity &&
	       o->inode == line->inode && o->device == line->device;
}

int
tables_object_make(const struct memory *mem, struct tables_object *known, uintptr_t base, const struct maps_line *line,
		   struct tables_copies *copies, struct tables_object **ret)
{
	struct tables_sections at;
	struct tables_object  *o;
	uint8_t               *header;
	uint64_t               identity;
	int                    err;

	if (!tables_sections_find(mem, base, &at))
		return -EINVAL;
	header = copy_room(&copies->header, at.header_size);
	if (!header || !memory_read(mem, at.header, header, at.header_size))
		return -EIO;
	identity = tables_hash(at.frames ^ at.frames_size, header, at.header_size);
	if (is_known(known, line, identity)) {
		known->users++;
		*ret = known;
		return 0;
	}
	if (!at.frames && !tables_sections_ask_file(mem, &at, line))
		return at.code_size < WORTH_TABLES ? -EINVAL : -ENOENT;
	o = pages_map(sizeof(*o));
	if (!o)
		return -ENOMEM;
	*o = (struct tables_object){ .start = line->start, .end = line->limit, .device = line->device,
			      .inode = line->inode, .identity = identity, .users = 1, .header = at.header,
			      .header_size = at.header_size, .frames = at.frames, .frames_size = at.frames_size };
	err = line->limit - line->start > UINT32_MAX ? -EFBIG : object_read(mem, o, at.is_page ? NULL : header, &copies->frames);
	if (err)
		tables_object_release(o);
	else
		*ret = o;
	return err;
}
