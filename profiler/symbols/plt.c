/*
 * plt.c - names for the stubs through which an object calls others: "write@plt".
 *
 * No symbol covers them, yet a program that calls short functions of a library is
 * seen in them.  A stub jumps through a slot of the global offset table, and a
 * relocation says whose address belongs into that slot:
 *
 *     .rela.plt, .rela.dyn:  slot --> symbol         stub:  jmp *slot(%rip)
 *
 * So the jump in each stub is decoded and its slot looked up, which holds for every
 * linker's layout (.plt, .plt.sec with IBT, .plt.got; on aarch64 with BTI and with
 * signed pointers), where counting entries does not.  On other architectures a stub is
 * "object+0x1234" like other unnamed code.
 *
 * Tests: tests/symbols/names.t, tests/symbols/test_symbols.c
 */
#include <config.h>

#include "plt.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "arch_stubs.h"
#include "table.h"

#define BATCH        2048                 /* relocations read at once; 48 KiB */
#define RELOCS_MAX   ((uint64_t)1 << 20)  /* of one section looked at */
#define CODE_MAX     ((uint64_t)4 << 20)  /* bytes of one section of stubs */
#define STRINGS_MAX  ((uint64_t)8 << 20)  /* bytes of the names of what is called */

static const char suffix[] = "@plt";

struct plt {
	const struct image *image;
	struct arena        scratch;
	struct table        used;  /* addresses of slots that have a stub */
	struct table        slots; /* of these, to 1 + offset of the name */
	ElfW(Shdr)          symbols, strings;
	char               *text;
	size_t              room, text_room; /* what the first of the two scans counted */
};

static int
read_strings(struct plt *p, uint32_t symbols)
{
	int r = image_section(p->image, symbols, &p->symbols);

	if (!r)
		r = image_section(p->image, p->symbols.sh_link, &p->strings);
	if (r < 0)
		return r;
	if (p->symbols.sh_type != SHT_DYNSYM || p->strings.sh_type != SHT_STRTAB ||
	    p->strings.sh_size > STRINGS_MAX || p->strings.sh_size > p->image->size)
		return -ENOENT;
	p->text = arena_alloc(&p->scratch, (size_t)p->strings.sh_size + 1);
	if (!p->text)
		return -ENOMEM;
	return image_read(p->image, p->strings.sh_offset, p->text, (size_t)p->strings.sh_size);
}

static int
add_slot(struct plt *p, const ElfW(Rela) *rela)
{
	uint64_t  type = ELF64_R_TYPE(rela->r_info), index = ELF64_R_SYM(rela->r_info);
	ElfW(Sym) sym;

	/* Most relocations are of data; only a few slots have a stub. */
	if ((type != ARCH_RELOC_SLOT && type != ARCH_RELOC_DATA) || !table_get(&p->used, rela->r_offset) ||
	    index >= p->symbols.sh_size / sizeof(sym) ||
	    image_read(p->image, p->symbols.sh_offset + index * sizeof(sym), &sym, sizeof(sym)) < 0 ||
	    sym.st_name >= p->strings.sh_size || !p->text[sym.st_name] ||
	    table_get(&p->slots, rela->r_offset))
		return 0;
	return table_put(&p->slots, rela->r_offset, (uint64_t)sym.st_name + 1);
}

/* Linkers put the relocations without a symbol first, and there are many: the first
 * of the others by binary search.  In another order some stubs stay unnamed. */
static uint64_t
skip_relative(const struct plt *p, const ElfW(Shdr) *s, uint64_t count)
{
	uint64_t low = 0, high = count;

	while (low < high) {
		uint64_t   middle = low + (high - low) / 2;
		ElfW(Rela) rela;

		if (image_read(p->image, s->sh_offset + middle * sizeof(rela), &rela, sizeof(rela)) < 0)
			return 0;
		if (ELF64_R_TYPE(rela.r_info) == ARCH_RELOC_RELATIVE)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int
read_relocations(struct plt *p, const char *section)
{
	ElfW(Shdr)  s;
	ElfW(Rela) *batch;
	uint64_t    left, skip;
	int         r = image_section_find(p->image, section, &s);

	if (r < 0 || s.sh_type != SHT_RELA)
		return r == -ENOENT ? 0 : r;
	if (!p->text)
		r = read_strings(p, s.sh_link);
	batch = arena_array(&p->scratch, BATCH, sizeof(*batch));
	if (!batch)
		r = -ENOMEM;
	left = s.sh_size / sizeof(ElfW(Rela));
	skip = skip_relative(p, &s, left);
	left = left - skip < RELOCS_MAX ? left - skip : RELOCS_MAX;
	for (uint64_t at = s.sh_offset + skip * sizeof(ElfW(Rela)); left && !r;) {
		size_t some = left < BATCH ? (size_t)left : BATCH;

		r = image_read(p->image, at, batch, some * sizeof(*batch));
		for (size_t i = 0; i < some && !r; i++)
			r = add_slot(p, &batch[i]);
		at += some * sizeof(*batch);
		left -= some;
	}
	return r;
}

/* "name@plt" goes to the end of the table's text; without entries it only counts. */
static int
add_stub(const struct plt *p, struct symtab *t, size_t *at, const char *name, uint64_t address, uint32_t size)
{
	size_t n = strnlen(name, SYMTAB_NAME_MAX);

	if (*at > UINT32_MAX / 4)
		return -EFBIG;
	if (t->entries) {
		if (t->count == p->room || p->text_room - *at < n + sizeof(suffix))
			return -EIO; /* the file changes under us */
		t->entries[t->count].key = address << 16;
		t->entries[t->count].size = size;
		t->entries[t->count].name = (uint32_t)*at;
		memcpy(t->sources[0].text + *at, name, n);
		memcpy(t->sources[0].text + *at + n, suffix, sizeof(suffix));
	}
	*at += n + sizeof(suffix);
	t->count++;
	return 0;
}

/* One section of stubs, sorted by address as they are; *at and t->count go on.  Without
 * names yet it only notes their slots. */
static int
scan(struct plt *p, const char *section, struct symtab *t, size_t *at)
{
	ElfW(Shdr)     s;
	struct plt_stub    stub;
	unsigned char *code;
	uint64_t       last = UINT64_MAX;
	int            r = image_section_find(p->image, section, &s);

	if (r < 0 || s.sh_size > CODE_MAX)
		return 0;
	code = arena_alloc(&p->scratch, (size_t)s.sh_size);
	if (!code)
		return -ENOMEM;
	r = image_read(p->image, s.sh_offset, code, (size_t)s.sh_size);
	for (size_t i = 0; !r && arch_stub_next(&s, code, &i, &stub);) {
		uint64_t name = stub.begin == last ? 0 : table_get(&p->slots, stub.slot);

		if (!table_get(&p->used, stub.slot))
			r = table_put(&p->used, stub.slot, 1);
		if (!name || s.sh_addr + stub.begin >= (uint64_t)1 << 48)
			continue;
		r = add_stub(p, t, at, p->text + name - 1, s.sh_addr + stub.begin, (uint32_t)stub.size);
		last = stub.begin;
	}
	return r;
}

/* In the order in which linkers place them; symtab_find() needs them sorted. */
static int
scan_all(struct plt *p, struct symtab *t, size_t *ret_text)
{
	static const char *const sections[] = { ".plt", ".plt.got", ".plt.sec" };
	int                      r = 0;

	*ret_text = 0;
	t->count = 0;
	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections) && !r; i++)
		r = scan(p, sections[i], t, ret_text);
	return r;
}

static int
is_sorted(const struct symtab *t)
{
	for (size_t i = 1; i < t->count; i++)
		if (t->entries[i - 1].key >= t->entries[i].key)
			return 0;
	return 1;
}

int
plt_build(struct symtab *t, struct arena *a, const struct image *img)
{
	struct plt p = { .image = img };
	size_t     text;
	int        r;

	arena_init(&p.scratch, a->budget);
	table_init(&p.slots, a->budget);
	table_init(&p.used, a->budget);
	r = scan_all(&p, t, &text);
	if (!r && !p.used.count)
		r = -ENOENT;
	if (!r)
		r = read_relocations(&p, ".rela.plt");
	if (!r)
		r = read_relocations(&p, ".rela.dyn");
	if (!r)
		r = scan_all(&p, t, &text);
	if (!r && (!t->count || text > UINT32_MAX / 4))
		r = -ENOENT;
	if (r < 0)
		goto out;
	t->source_count = 1;
	t->sources[0] = (struct symtab_source){ .image = img, .verbatim = true };
	t->sources[0].strings.sh_size = text;
	p.room = t->count;
	p.text_room = text;
	t->sources[0].text = arena_alloc(a, text + 1);
	t->entries = arena_array(a, t->count, sizeof(*t->entries));
	r = t->entries && t->sources[0].text ? scan_all(&p, t, &text) : -ENOMEM;
	if (!r && !is_sorted(t))
		r = -ENOENT;
out:
	if (r < 0)
		t->count = 0;
	table_release(&p.slots);
	table_release(&p.used);
	arena_release(&p.scratch);
	return r;
}
