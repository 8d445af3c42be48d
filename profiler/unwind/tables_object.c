/*
 * tables_object.c - the unwind rows of one loaded object, from its memory.
 *
 * PT_GNU_EH_FRAME, a program header, names .eh_frame_hdr, which says where .eh_frame is
 * and has a search table.  What gcc -static links has none, unless it is asked for by
 * -Wl,--eh-frame-hdr: .eh_frame is loaded all the same, but only the section headers
 * say where, and they are in the file alone.  A linker that did not understand some
 * description leaves the search table out.  The table is then made here.
 *
 * The search table gives the descriptions in order; cfi.c runs them, and the rows are
 * packed into one mapping: an index by pages of 256 bytes, then rows of pc and code.
 *
 * What a stranger would get wrong:
 * - Everything is read through /proc/self/mem, since dlclose may take the object away
 *   at any moment: that costs its rows and nothing else.
 * - An address range can be used again by another object, so an object counts as the
 *   same only if its .eh_frame_hdr, or its first page, reads the same too.
 * - The file may have been replaced by an upgrade since it was mapped.  So it is asked only
 *   if its first page, with the program headers and most often the build id, is the one in
 *   memory; the sections are read from memory anyway.
 *
 * Tests: tests/unwind/test_tables.c, tests/unwind/test_refresh.c, tests/unwind/hidden_tables.t.
 */
#include <config.h>

#include "tables_lookup.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "file.h"
#include "memory.h"
#include "our_fd.h"
#include "pages.h"
#include "process.h"
#include "sort.h"
#include "table.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define FRAMES_MAX   ((size_t)256 << 20) /* bytes of one object's .eh_frame */
#define PHDRS_MAX    64
#define SECTIONS_MAX 4096 /* section headers looked at; programs have some forty */
#define PAGE         ((size_t)4096)

#define PCREL_SDATA4   0x1b /* DW_EH_PE encodings: what all linkers write */
#define UDATA4         0x03
#define DATAREL_SDATA4 0x3b

#define ROWS_FIRST   8192           /* 64 KiB */
#define ROW_COSTS    2              /* bytes of .eh_frame at least: a row ends, and a rule changes */
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
		pages_unmap(c->bytes, c->size);
	*c = (struct tables_copy){ NULL, 0 };
}

/* ---- where its sections are ---- */

struct sections {
	struct tables_section at; /* frames 0: memory does not tell */
	uintptr_t             base, bias;
	size_t                code_size;
	bool                  is_page; /* there is no search table: header is the object's first page instead */
};

struct program {
	Elf64_Ehdr eh;
	Elf64_Phdr ph[PHDRS_MAX];
};

static bool
program_read(const struct memory *mem, uintptr_t base, struct program *p)
{
	return memory_read(mem, base, &p->eh, sizeof(p->eh)) && memcmp(p->eh.e_ident, ELFMAG, SELFMAG) == 0 &&
	       p->eh.e_ident[EI_CLASS] == ELFCLASS64 && p->eh.e_phentsize == sizeof(p->ph[0]) &&
	       p->eh.e_phnum <= PHDRS_MAX &&
	       memory_read(mem, base + p->eh.e_phoff, p->ph, p->eh.e_phnum * sizeof(p->ph[0]));
}

static const Elf64_Phdr *
program_first(const struct program *p, uint32_t type)
{
	for (unsigned i = 0; i < p->eh.e_phnum; i++)
		if (p->ph[i].p_type == type)
			return &p->ph[i];
	return NULL;
}

/* How many bytes there are from address on to the end of its segment; 0: it is in none. */
static size_t
program_room(const struct program *p, uintptr_t bias, uintptr_t address)
{
	for (unsigned i = 0; i < p->eh.e_phnum; i++) {
		uintptr_t start = bias + p->ph[i].p_vaddr, end = start + p->ph[i].p_memsz;

		if (p->ph[i].p_type == PT_LOAD && address >= start && address < end)
			return end - address;
	}
	return 0;
}

static size_t
program_code(const struct program *p)
{
	size_t size = 0;

	for (unsigned i = 0; i < p->eh.e_phnum; i++)
		if (p->ph[i].p_type == PT_LOAD && (p->ph[i].p_flags & PF_X))
			size += p->ph[i].p_memsz;
	return size;
}

/* What .eh_frame_hdr says, if it is one of the form that all linkers write. */
static void
header_read(const struct memory *mem, const struct program *p, const Elf64_Phdr *ph, struct sections *s)
{
	uintptr_t header = s->bias + ph->p_vaddr, frames;
	uint8_t   head[8];
	int32_t   offset;
	size_t    room;

	if (ph->p_memsz > FRAMES_MAX || !memory_read(mem, header, head, sizeof(head)) || head[0] != 1 ||
	    head[1] != PCREL_SDATA4)
		return;
	memcpy(&offset, head + 4, sizeof(offset));
	frames = header + 4 + (uintptr_t)(intptr_t)offset;
	room = program_room(p, s->bias, frames);
	if (!room || room > FRAMES_MAX)
		return;
	s->at.frames = frames;
	s->at.frames_size = room;
	if (head[3] != DATAREL_SDATA4)
		return;
	s->at.header = header;
	s->at.header_size = ph->p_memsz;
	s->is_page = false;
}

/* By the program headers of the object at base; false: it is no object. */
static bool
sections_find(const struct memory *mem, uintptr_t base, struct sections *ret)
{
	struct program    p;
	const Elf64_Phdr *load, *frame;

	if (!program_read(mem, base, &p))
		return false;
	load = program_first(&p, PT_LOAD);
	frame = program_first(&p, PT_GNU_EH_FRAME);
	if (!load)
		return false;
	*ret = (struct sections){ .base = base, .bias = base - (load->p_vaddr - load->p_offset),
				  .at = { .header = base, .header_size = PAGE }, .is_page = true,
				  .code_size = program_code(&p) };
	if (frame)
		header_read(mem, &p, frame, ret);
	return true;
}

/* ---- the file ---- */

static bool
file_read(int fd, uint64_t offset, void *buf, size_t size)
{
	return pread(fd, buf, size, (off_t)offset) == (ssize_t)size;
}

/* The first page, or what the object has of it: the linker's own bytes, which nobody writes to
 * in memory, unless code and data are one segment. */
static bool
file_is_mapped(int fd, const struct memory *mem, uintptr_t base, const struct program *p)
{
	unsigned char     in_file[PAGE], in_memory[PAGE];
	const Elf64_Phdr *load = program_first(p, PT_LOAD);
	size_t            size;

	if (!load)
		return false;
	size = load->p_flags & PF_W ? p->eh.e_phoff + p->eh.e_phnum * sizeof(p->ph[0]) : load->p_filesz;
	if (load->p_offset != 0 || size > PAGE)
		size = PAGE;
	return file_read(fd, 0, in_file, size) && memory_read(mem, base, in_memory, size) &&
	       memcmp(in_file, in_memory, size) == 0;
}

static bool
file_find(int fd, const struct program *p, struct sections *s)
{
	static const char name[] = ".eh_frame";
	Elf64_Shdr        names, sh;
	char              is[sizeof(name)];
	size_t            room;

	if (p->eh.e_shentsize != sizeof(sh) || p->eh.e_shnum > SECTIONS_MAX ||
	    !file_read(fd, p->eh.e_shoff + p->eh.e_shstrndx * sizeof(sh), &names, sizeof(names)))
		return false;
	for (unsigned i = 0; i < p->eh.e_shnum; i++) {
		if (!file_read(fd, p->eh.e_shoff + i * sizeof(sh), &sh, sizeof(sh)))
			return false;
		if (!(sh.sh_flags & SHF_ALLOC) || sh.sh_name > names.sh_size ||
		    !file_read(fd, names.sh_offset + sh.sh_name, is, sizeof(is)) || memcmp(is, name, sizeof(name)) != 0)
			continue;
		room = program_room(p, s->bias, s->bias + sh.sh_addr);
		if (sh.sh_size == 0 || sh.sh_size > room || sh.sh_size > FRAMES_MAX)
			return false;
		s->at.frames = s->bias + sh.sh_addr;
		s->at.frames_size = sh.sh_size;
		return true;
	}
	return false;
}

/* By the section headers of its file; line is one of its mappings.  False: there is no file
 * that is surely the one which is mapped, or no .eh_frame in it. */
static bool
sections_ask_file(const struct memory *mem, struct sections *s, const struct maps_line *line)
{
	struct program p;
	const char    *path;
	char           link[FILE_LINK_MAX];
	bool           is_main, found = false;

	if (!program_read(mem, s->base, &p))
		return false;
	is_main = process_auxv(AT_PHDR) == s->base + p.eh.e_phoff;
	for (unsigned i = 0; !found && (path = file_of_mapping(i, line->start, line->limit, is_main, line->path, link)); i++) {
		int fd = *path == '/' ? file_open(path) : -ENOENT;

		if (fd < 0)
			continue;
		found = file_is_mapped(fd, mem, s->base, &p) && file_find(fd, &p, s);
		our_fd_close(fd);
	}
	return found;
}

/* ---- a search table ---- */

/* As in .eh_frame_hdr. */
struct search_entry {
	int32_t pc, description;
};

struct search {
	uint8_t             version, pointer_encoding, count_encoding, entry_encoding;
	int32_t             frames;
	uint32_t            count;
	struct search_entry entries[];
};

struct search_filling {
	uintptr_t      base;
	struct search *to; /* NULL: they are counted */
	uint32_t       count;
};

static void
search_add(void *arg, uintptr_t pc, size_t offset)
{
	struct search_filling *f = arg;
	intptr_t               distance = (intptr_t)(pc - f->base);

	if (distance < INT32_MIN || distance > INT32_MAX)
		return;
	if (f->to)
		f->to->entries[f->count] = (struct search_entry){ (int32_t)distance, (int32_t)offset };
	f->count++;
}

static bool
search_is_before(const struct search_entry *a, const struct search_entry *b)
{
	return a->pc < b->pc;
}

HEAP_SORT(search_sort, struct search_entry, search_is_before)

/* What .eh_frame_hdr should have been, its numbers counted from frames->address.  0 or a
 * negative errno. */
static int
search_make(const struct cfi_section *frames, struct tables_copy *ret)
{
	struct search_filling f = { .base = frames->address };
	int                   err = cfi_functions(frames, search_add, &f);

	if (err)
		return err;
	ret->size = sizeof(*f.to) + f.count * sizeof(f.to->entries[0]);
	ret->bytes = f.to = pages_map(ret->size);
	if (!f.to) {
		ret->size = 0;
		return -ENOMEM;
	}
	*f.to = (struct search){ 1, PCREL_SDATA4, UDATA4, DATAREL_SDATA4, 0, f.count };
	f.count = 0;
	cfi_functions(frames, search_add, &f);
	search_sort(f.to->entries, f.count);
	return 0;
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
	struct cfi_row            before; /* the last one before the start, which may hold there */
	bool                      any_before;
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

/* Twice as many, but no more than descriptions that do not overlap can have. */
static int
sink_grow(struct row_sink *s)
{
	size_t count = sink_count(s), most = s->frames->size / ROW_COSTS;

	return count < most ? sink_resize(s, count * 2 < most ? count * 2 : most) : -EFBIG;
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
	if (s->next == s->end && sink_grow(s) < 0)
		return -ENOMEM;
	row_put(s, at, code);
	return 0;
}

/* Of another mapping of the same text, as mprotect() or madvise() of a part of it makes. */
static __attribute__((noinline)) int
row_add_outside(struct row_sink *s, uintptr_t pc, const struct cfi_row *row)
{
	if (pc < s->start) {
		memcpy(&s->before, row, sizeof(*row));
		s->any_before = true;
	}
	return 0;
}

/* Before the first row of the mapping itself, which begins there. */
static __attribute__((noinline)) int
row_add_start(struct row_sink *s, uintptr_t there)
{
	s->any_before = false;
	return there > 0 ? row_add_odd(s, 0, &s->before, tables_code_plain(&s->before, tables_code_saved(&s->before))) : 0;
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
		return row_add_outside(s, pc, row);
	if (__builtin_expect(s->any_before, 0) && row_add_start(s, at) < 0)
		return -ENOMEM;
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
	struct row_sink sink = { .start = o->at.start, .size = o->at.end - o->at.start, .frames = frames };
	size_t          extent = 0;
	int             err = sink_start(&sink);

	if (!err)
		err = cfi_parse(header, frames, row_add, &sink, &o->bad, &extent);
	if (!err && sink.any_before)
		err = row_add_start(&sink, sink.size);
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
	struct cfi_section header = { header_copy, o->at.header_size, o->at.header };
	struct cfi_section frames = { copy_room(copy, o->at.frames_size), o->at.frames_size, o->at.frames };
	int                err;

	if (!frames.data)
		return -ENOMEM;
	if (!memory_read(mem, o->at.frames, (void *)(uintptr_t)frames.data, frames.size))
		return -EIO;
	if (!header_copy) {
		err = search_make(&frames, &o->made);
		if (err)
			return err;
		header = (struct cfi_section){ o->made.bytes, o->made.size, o->at.frames };
		o->at.header = (uintptr_t)o->made.bytes;
		o->at.header_size = o->made.size;
	}
	o->at.header_base = header.address;
	return object_rows(o, &header, &frames);
}

void
tables_object_release(struct tables_object *o)
{
	if (--o->users > 0)
		return;
	if (o->pages)
		pages_unmap((void *)(uintptr_t)o->pages, o->map_bytes);
	tables_copy_release(&o->made);
	pages_unmap(o, sizeof(*o));
}

static bool
is_known(const struct tables_object *o, const struct maps_line *line, uint64_t identity)
{
	return o && o->at.start == line->start && o->at.end == line->limit && o->identity == identity &&
	       o->inode == line->inode && o->device == line->device;
}

static bool
pay(struct tables_copies *copies, size_t bytes)
{
	if (bytes > copies->left)
		return false;
	copies->left -= bytes;
	return true;
}

int
tables_object_make(const struct memory *mem, struct tables_object *known, uintptr_t base, const struct maps_line *line,
		   struct tables_copies *copies, struct tables_object **ret)
{
	struct sections        s;
	struct tables_object  *o;
	uint8_t               *header;
	uint64_t               identity;
	int                    err;

	if (!sections_find(mem, base, &s))
		return -EINVAL;
	if (!pay(copies, s.at.header_size))
		return -ENOENT;
	header = copy_room(&copies->header, s.at.header_size);
	if (!header || !memory_read(mem, s.at.header, header, s.at.header_size))
		return -EIO;
	identity = table_hash(0, header, s.at.header_size) ^ s.at.frames ^ s.at.frames_size;
	if (is_known(known, line, identity)) {
		known->users++;
		*ret = known;
		return 0;
	}
	if (!s.at.frames && !sections_ask_file(mem, &s, line))
		return s.code_size < WORTH_TABLES ? -EINVAL : -ENOENT;
	if (!pay(copies, s.at.frames_size))
		return -ENOENT;
	o = pages_map(sizeof(*o));
	if (!o)
		return -ENOMEM;
	s.at.start = line->start;
	s.at.end = line->limit;
	*o = (struct tables_object){ .at = s.at, .device = line->device, .inode = line->inode, .identity = identity,
				     .users = 1 };
	err = line->limit - line->start > UINT32_MAX ? -EFBIG : object_read(mem, o, s.is_page ? NULL : header, &copies->frames);
	if (err)
		tables_object_release(o);
	else
		*ret = o;
	return err;
}
