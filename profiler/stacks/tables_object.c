/*
 * tables_object.c - the unwind rows of one loaded object, from its memory.
 *
 * The program headers name .eh_frame_hdr, whose search table gives the descriptions
 * in order; cfi.c runs them, and the rows are packed into one mapping: an index by
 * pages of 256 bytes, then rows of pc and code.
 *
 * What a stranger would get wrong:
 * - Everything is read through /proc/self/mem, since dlclose may take the object away
 *   at any moment: that costs its rows and nothing else.
 * - An address range can be used again by another object, so an object counts as the
 *   same only if its .eh_frame_hdr reads the same too.
 *
 * Why not the file: it may have been replaced by an upgrade since it was mapped.
 *
 * Tests: tests/test_unwind_tables.c, tests/test_unwind_refresh.c.
 */
#include <config.h>

#include "tables_parts.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "memory.h"

#define FRAMES_MAX ((size_t)256 << 20) /* bytes of one object's .eh_frame */
#define PHDRS_MAX  64

void *
tables_map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* ---- rows that grow ---- */

struct vector {
	char  *data;
	size_t used, room;
};

static void *
vector_add(struct vector *v, size_t size)
{
	if (v->room - v->used < size) {
		size_t room = v->room ? v->room * 2 : (size_t)64 << 10;
		void  *p = v->data ? mremap(v->data, v->room, room, MREMAP_MAYMOVE) : tables_map(room);

		if (!p || p == MAP_FAILED)
			return NULL;
		v->data = p;
		v->room = room;
	}
	v->used += size;
	return v->data + v->used - size;
}

static void
vector_release(struct vector *v)
{
	if (v->data)
		munmap(v->data, v->room);
	*v = (struct vector){ 0 };
}

struct row_sink {
	uintptr_t                 start, end;
	const struct cfi_section *frames;
	struct vector             rows;
	struct cfi_row            last;
	uint32_t                  last_code;
	bool                      any;
};

static int
row_add(void *arg, uintptr_t pc, const struct cfi_row *row)
{
	struct row_sink   *s = arg;
	struct tables_row *rows;
	uint32_t           code;
	size_t             n;

	if (pc < s->start || pc >= s->end)
		return 0;
	if (s->any && memcmp(&s->last, row, sizeof(*row)) == 0)
		code = s->last_code;
	else
		code = tables_palette_add(row, s->frames);
	memcpy(&s->last, row, sizeof(*row));
	s->any = true;
	s->last_code = code;
	/* A description that turned out damaged is taken back to where it began. */
	rows = (struct tables_row *)(void *)s->rows.data;
	n = s->rows.used / sizeof(*rows);
	while (n > 0 && rows[n - 1].pc >= (uint32_t)(pc - s->start))
		n--;
	s->rows.used = n * sizeof(*rows);
	if (n > 0 && rows[n - 1].code == code)
		return 0;
	rows = vector_add(&s->rows, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	*rows = (struct tables_row){ (uint32_t)(pc - s->start), code };
	return 0;
}

/* One mapping with index and rows of the object. */
static int
object_pack(struct tables_object *o, const struct row_sink *s)
{
	size_t             count = s->rows.used / sizeof(struct tables_row);
	size_t             pages = ((o->end - o->start - 1) >> TABLES_PAGE_SHIFT) + 2;
	struct tables_row *rows;
	uint32_t          *index;
	uint32_t           row = 0;

	pages += pages % 2; /* rows are aligned to their size */
	o->map_bytes = pages * sizeof(*index) + count * sizeof(*rows);
	index = tables_map(o->map_bytes);
	if (!index)
		return -ENOMEM;
	rows = (struct tables_row *)(void *)(index + pages);
	if (count > 0)
		memcpy(rows, s->rows.data, count * sizeof(*rows));
	o->pages = index;
	o->rows = rows;
	o->count = (uint32_t)count;
	/* pages[i]: how many rows start at or before the first byte of page i */
	for (size_t page = 0; page < pages; page++) {
		while (row < count && rows[row].pc <= (page << TABLES_PAGE_SHIFT))
			row++;
		index[page] = row;
	}
	return 0;
}

/* What the ELF header at `image` says of the unwind sections. */
struct image {
	uintptr_t header, frames;
	size_t    header_size, frames_size;
};

static uintptr_t
frames_address(int mem, uintptr_t header)
{
	uint8_t head[8];
	int32_t offset;

	/* version, encoding of the pointer: pcrel sdata4 from every linker */
	if (!memory_read(mem, header, head, sizeof(head)) || head[0] != 1 || head[1] != 0x1b)
		return 0;
	memcpy(&offset, head + 4, sizeof(offset));
	return header + 4 + (uintptr_t)(intptr_t)offset;
}

static bool
image_read(int mem, uintptr_t base, struct image *ret)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph[PHDRS_MAX];
	uintptr_t  bias = 0, header = 0, frames;
	size_t     header_size = 0;
	bool       have_bias = false;

	if (!memory_read(mem, base, &eh, sizeof(eh)) || memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_phentsize != sizeof(ph[0]) || eh.e_phnum > PHDRS_MAX ||
	    !memory_read(mem, base + eh.e_phoff, ph, eh.e_phnum * sizeof(ph[0])))
		return false;
	for (unsigned i = 0; i < eh.e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD && !have_bias) {
			bias = base - (ph[i].p_vaddr - ph[i].p_offset);
			have_bias = true;
		}
	}
	for (unsigned i = 0; have_bias && i < eh.e_phnum; i++) {
		if (ph[i].p_type == PT_GNU_EH_FRAME) {
			header = bias + ph[i].p_vaddr;
			header_size = ph[i].p_memsz;
		}
	}
	frames = header ? frames_address(mem, header) : 0;
	for (unsigned i = 0; frames && i < eh.e_phnum; i++) {
		uintptr_t start = bias + ph[i].p_vaddr, end = start + ph[i].p_memsz;

		if (ph[i].p_type != PT_LOAD || frames < start || frames >= end || end - frames > FRAMES_MAX ||
		    header_size > FRAMES_MAX)
			continue;
		*ret = (struct image){ header, frames, header_size, end - frames };
		return true;
	}
	return false;
}

/* How much of the copy .eh_frame really is: up to its zero word. */
static size_t
frames_extent(const uint8_t *data, size_t size)
{
	size_t   at = 0;
	uint32_t length;

	while (size - at >= 4) {
		memcpy(&length, data + at, 4);
		at += 4;
		if (length == 0 || length > size - at)
			break;
		at += length;
	}
	return at;
}

static int
object_read(int mem, const struct image *image, struct tables_object *o, const void *header_copy)
{
	struct cfi_section header = { header_copy, image->header_size, image->header };
	struct cfi_section frames = { tables_map(image->frames_size), image->frames_size, image->frames };
	struct row_sink    sink = { .start = o->start, .end = o->end, .frames = &frames };
	int                err;

	if (!frames.data)
		return -ENOMEM;
	err = -EIO;
	if (memory_read(mem, image->frames, (void *)(uintptr_t)frames.data, frames.size))
		err = cfi_parse(&header, &frames, row_add, &sink, &o->bad);
	if (!err)
		err = object_pack(o, &sink);
	o->frames_bytes = image->header_size + frames_extent(frames.data, frames.size);
	vector_release(&sink.rows);
	munmap((void *)(uintptr_t)frames.data, frames.size);
	return err;
}

void
tables_object_release(struct tables_object *o)
{
	if (--o->users > 0)
		return;
	if (o->pages)
		munmap((void *)(uintptr_t)o->pages, o->map_bytes);
	munmap(o, sizeof(*o));
}

struct tables_object *
tables_object_make(int mem, struct tables_object *known, uintptr_t base, const struct maps_line *line)
{
	struct image         image;
	struct tables_object       *o;
	uint8_t             *header;
	uint64_t             identity;

	if (!image_read(mem, base, &image))
		return NULL;
	header = tables_map(image.header_size);
	if (!header)
		return NULL;
	o = NULL;
	if (!memory_read(mem, image.header, header, image.header_size))
		goto out;
	identity = tables_hash(image.frames ^ image.frames_size, header, image.header_size);
	if (known && known->start == line->start && known->end == line->limit && known->identity == identity &&
	    known->inode == line->inode && known->device == line->device) {
		o = known;
		o->users++;
		goto out;
	}
	o = tables_map(sizeof(*o));
	if (!o)
		goto out;
	*o = (struct tables_object){ .start = line->start, .end = line->limit, .device = line->device,
			      .inode = line->inode, .identity = identity, .users = 1 };
	o->header = image.header;
	o->header_size = image.header_size;
	o->frames = image.frames;
	o->frames_size = image.frames_size;
	if (line->limit - line->start > UINT32_MAX || object_read(mem, &image, o, header) != 0) {
		tables_object_release(o);
		o = NULL;
	}
out:
	munmap(header, image.header_size);
	return o;
}
