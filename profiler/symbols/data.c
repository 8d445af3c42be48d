/*
 * data.c - the name of what lies at an address of data: a static lock, say.
 *
 *     address --> object, by its program headers in memory --> ELF address --> symbol --> name, offset
 *
 * What a stranger would get wrong: the end of a data segment is in no file (.bss), so the way
 * of symbols.c, through the offset in the file, does not lead there.
 *
 * No table is made, as for functions: few addresses are asked for, and each costs one reading of
 * the file's symbols.
 *
 * Tests: tests/threads/deadlock.t.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "debug_file.h"
#include "demangle/demangle.h"
#include "our_fd.h"
#include "symbols_state.h"

#define DATA_SEGMENTS_MAX 256 /* program headers that are looked at */

struct symbols_datum {
	struct symbols_datum *next;
	uintptr_t             address;
	struct symbol_data    found; /* name NULL: it has none */
};

/* Its ELF address, if it is in a segment of the object. */
static bool
is_in(const struct object *o, uintptr_t address, uint64_t *ret_vaddr)
{
	struct image img;
	uintptr_t    bias = 0;
	bool         based = false;

	if (!o->header || o->memory || o->gone || image_open_memory(&img, o->header, o->header_size) < 0)
		return false;
	for (unsigned i = 0; i < img.header.e_phnum && i < DATA_SEGMENTS_MAX; i++) {
		ElfW(Phdr) p;

		if (image_read(&img, img.header.e_phoff + (uint64_t)i * sizeof(p), &p, sizeof(p)) < 0)
			return false;
		if (p.p_type != PT_LOAD)
			continue;
		if (!based) /* the first one has the header */
			bias = o->header - (uintptr_t)(p.p_vaddr - p.p_offset);
		based = true;
		if (address - bias - p.p_vaddr < p.p_memsz) {
			*ret_vaddr = address - bias;
			return true;
		}
	}
	return false;
}

/* The file that is mapped, or what is mapped of it; the descriptor or -1. */
static int
object_image(const struct object *o, struct image *ret)
{
	int fd = object_open_again(o, ret);

	if (fd < 0 && image_open_mapped(ret, o->header, o->header_size) < 0)
		*ret = (struct image){ .fd = -1 };
	return fd < 0 ? -1 : fd;
}

static const char *
name_of(struct symbols *s, const struct object *o, uint64_t vaddr, uint64_t *ret_offset)
{
	struct arena  scratch;
	struct symtab t = { 0 };
	struct image  image, debug;
	int           fd = object_image(o, &image), debug_fd = -1, r;
	const char   *name = NULL;

	arena_init(&scratch, &s->budget);
	r = symtab_add_source(&t, &scratch, &image, SHT_SYMTAB);
	if (r == -ENOENT && fd >= 0)
		debug_fd = debug_file_open_table(&image, o->path, o->build_id, &s->budget, &debug);
	if (debug_fd >= 0)
		r = symtab_add_source(&t, &scratch, &debug, SHT_SYMTAB);
	if (r < 0)
		r = symtab_add_source(&t, &scratch, &image, SHT_DYNSYM);
	if (r == 0)
		name = symtab_data(&t, vaddr, &s->arena, ret_offset);
	/* A name that is clean as it stands is not copied. */
	name = name ? arena_strndup(&s->arena, name, strlen(name)) : NULL;
	arena_release(&scratch);
	our_fd_close(debug_fd);
	our_fd_close(fd);
	return name;
}

bool
symbols_data(struct symbols *s, uintptr_t address, struct symbol_data *ret)
{
	struct symbols_datum *d = s->data;
	const char           *readable;
	uint64_t              vaddr;
	unsigned              known = 0;

	for (; d && d->address != address; d = d->next)
		known++;
	if (!d) {
		d = known < SYMBOLS_DATA_MAX ? arena_alloc(&s->arena, sizeof(*d)) : NULL;
		if (!d)
			return false;
		*d = (struct symbols_datum){ .next = s->data, .address = address };
		s->data = d;
		for (size_t i = 0; i < s->object_count && !d->found.name; i++)
			if (is_in(&s->objects[i], address, &vaddr)) {
				d->found.name = name_of(s, &s->objects[i], vaddr, &d->found.offset);
				break;
			}
		readable = d->found.name ? demangle(d->found.name, &s->demangling, &s->arena) : NULL;
		d->found.name = readable ? readable : d->found.name;
	}
	*ret = d->found;
	return d->found.name;
}
