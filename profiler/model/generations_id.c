/*
 * generations_id.c - what tells a mapped object from all others.
 *
 * That is its build id, found through the notes its program headers name.  Four bytes
 * of it are the mark which hooks compare, where it lies in memory.  An object without
 * a build id is marked by its ELF header's e_shoff, which tells files of different
 * length apart, and by nothing else.
 *
 * What a stranger would get wrong: all is read by memory.c, as the object
 * may be unloaded while it is looked at.
 *
 * Tests: tests/model/test_generations.c, tests/model/unloaded_plugins.t.
 */
#include <config.h>

#include <elf.h>
#include <link.h>
#include <string.h>

#include "generations_parts.h"
#include "memory.h"

#define PHDRS_MAX 64
#define NOTES_MAX 4096 /* bytes of one note segment looked at */
#define ID_MAX    ((GENERATIONS_ID_MAX - 1) / 2)

static void
hex(char *to, const unsigned char *from, size_t size)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < size; i++) {
		*to++ = digits[from[i] >> 4];
		*to++ = digits[from[i] & 15];
	}
	*to = '\0';
}

/* The build id among the notes at address. */
static bool
notes_read(const struct memory *mem, uintptr_t address, size_t size, struct generation *g)
{
	unsigned char notes[NOTES_MAX];
	ElfW(Nhdr)    n;
	size_t        at = 0, name, desc;

	if (size > sizeof(notes))
		size = sizeof(notes);
	if (!memory_read(mem, address, notes, size))
		return false;
	while (size - at >= sizeof(n)) {
		memcpy(&n, notes + at, sizeof(n));
		at += sizeof(n);
		name = ((size_t)n.n_namesz + 3) & ~(size_t)3;
		desc = ((size_t)n.n_descsz + 3) & ~(size_t)3;
		if (name > size - at || desc > size - at - name)
			return false;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && !memcmp(notes + at, "GNU", 4) &&
		    n.n_descsz >= 4 && n.n_descsz <= ID_MAX) {
			hex(g->build_id, notes + at + name, n.n_descsz);
			memcpy(&g->mark_is, notes + at + name, sizeof(g->mark_is));
			g->mark = address + at + name;
			return true;
		}
		at += name + desc;
	}
	return false;
}

bool
generations_identify(const struct memory *mem, uintptr_t header, size_t header_size, struct generation *g)
{
	ElfW(Ehdr) eh;
	ElfW(Phdr) ph[PHDRS_MAX];

	g->build_id[0] = '\0';
	g->mark = 0;
	if (!memory_read(mem, header, &eh, sizeof(eh)) || memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh.e_phentsize != sizeof(ph[0]) || eh.e_phnum > PHDRS_MAX || eh.e_phoff > header_size ||
	    eh.e_phnum * sizeof(ph[0]) > header_size - eh.e_phoff ||
	    !memory_read(mem, header + eh.e_phoff, ph, eh.e_phnum * sizeof(ph[0])))
		return false;
	for (unsigned i = 0; i < eh.e_phnum; i++) {
		if (ph[i].p_type != PT_NOTE || ph[i].p_offset > header_size || ph[i].p_filesz > header_size - ph[i].p_offset)
			continue;
		if (notes_read(mem, header + ph[i].p_offset, ph[i].p_filesz, g))
			return true;
	}
	g->mark = header + offsetof(ElfW(Ehdr), e_shoff);
	memcpy(&g->mark_is, &eh.e_shoff, sizeof(g->mark_is));
	return true;
}
