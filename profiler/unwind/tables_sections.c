/*
 * tables_sections.c - where a loaded object has its .eh_frame.
 *
 * PT_GNU_EH_FRAME, a program header, names .eh_frame_hdr, which says where .eh_frame is
 * and has a search table.  What gcc -static links has none, unless it is asked for by
 * -Wl,--eh-frame-hdr: .eh_frame is loaded all the same, but only the section headers
 * say where, and they are in the file alone.  A linker that did not understand some
 * description leaves the search table out.  The table is then made here.
 *
 * What a stranger would get wrong: the file may have been replaced by an upgrade since it
 * was mapped.  So it is asked only if its first page, with the program headers and most
 * often the build id, is the one in memory; the sections are read from memory anyway.
 *
 * Tests: tests/unwind/test_tables.c, tests/unwind/hidden_tables.t.
 */
#include <config.h>

#include "tables_parts.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "file.h"
#include "our_fd.h"
#include "memory.h"
#include "pages.h"
#include "sort.h"

#define FRAMES_MAX   ((size_t)256 << 20) /* bytes of one object's .eh_frame */
#define PHDRS_MAX    64
#define SECTIONS_MAX 4096 /* section headers looked at; programs have some forty */
#define PAGE         ((size_t)4096)

#define PCREL_SDATA4   0x1b /* DW_EH_PE encodings: what all linkers write */
#define UDATA4         0x03
#define DATAREL_SDATA4 0x3b

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
header_read(const struct memory *mem, const struct program *p, const Elf64_Phdr *ph, struct tables_sections *s)
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
	s->frames = frames;
	s->frames_size = room;
	if (head[3] != DATAREL_SDATA4)
		return;
	s->header = header;
	s->header_size = ph->p_memsz;
	s->is_page = false;
}

bool
tables_sections_find(const struct memory *mem, uintptr_t base, struct tables_sections *ret)
{
	struct program    p;
	const Elf64_Phdr *load, *frame;

	if (!program_read(mem, base, &p))
		return false;
	load = program_first(&p, PT_LOAD);
	frame = program_first(&p, PT_GNU_EH_FRAME);
	if (!load)
		return false;
	*ret = (struct tables_sections){ .base = base, .bias = base - (load->p_vaddr - load->p_offset),
					 .header = base, .header_size = PAGE, .is_page = true,
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
file_find(int fd, const struct program *p, struct tables_sections *s)
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
		s->frames = s->bias + sh.sh_addr;
		s->frames_size = sh.sh_size;
		return true;
	}
	return false;
}

bool
tables_sections_ask_file(const struct memory *mem, struct tables_sections *s, const struct maps_line *line)
{
	struct program p;
	const char    *path;
	char           link[FILE_LINK_MAX];
	bool           is_main, found = false;

	if (!program_read(mem, s->base, &p))
		return false;
	is_main = getauxval(AT_PHDR) == s->base + p.eh.e_phoff;
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

int
tables_search_make(const struct cfi_section *frames, struct tables_copy *ret)
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
