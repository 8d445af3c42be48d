/*
 * symtab.c - the functions of one ELF object, sorted by address.
 *
 * Two passes over the symbols, through a small buffer: the first counts functions,
 * the second writes 16 bytes for each; a radix sort; then one name for each
 * address.  Aliases are common (free, cfree, __libc_free): at one address a typed
 * symbol wins over a label, a sized one over an unsized, a global over a local, and
 * then the one with fewer leading underscores, which is the name people call.
 *
 * What a stranger would get wrong: the nearest symbol below an address is not
 * always its function.  Past the end of a sized function nothing is known, and a
 * label inside a function (assembly is full of them) must not hide it.  So a sized
 * symbol around the address is looked for first, a few entries back too, since
 * functions nest; only then an unsized one counts, up to its section's end.
 *
 * Not qsort(): it may call malloc.  Not a copy of the file's table: 24 bytes a
 * symbol, most of which are no functions.
 *
 * Tests: tests/symbols/test_symbols.c, tests/symbols/test_hostile.c
 */
#include <config.h>

#include "symtab.h"

#include <errno.h>
#include <string.h>

#include "utf8.h"

#define BATCH     128 /* symbols read at once; 3 KiB of stack */
#define LOOK_BACK 32  /* entries; how deep functions nest, with labels between */
#define DIGIT     11  /* bits sorted by in one pass */
#define ADDRESS_MAX ((uint64_t)1 << 48) /* what the key has room for */
#define SYMBOLS_COUNT_MAX ((uint64_t)1 << 23) /* symbols of one table looked at */

/* Rank, from the worst fault down. */
#define RANK_LABEL   0x8000u /* STT_NOTYPE */
#define RANK_UNSIZED 0x4000u
#define RANK_LOCAL   0x2000u
#define RANK_UNDERSCORES 7u

#define SOURCE_SHIFT 31

int
symtab_add_source(struct symtab *t, struct arena *a, const struct image *image, uint32_t type)
{
	struct symtab_source s = { .image = image };
	int                  r = -ENOENT;

	if (t->source_count == SYMTAB_SOURCES_MAX)
		return -ENOSPC;
	if (!image->section_count && image->header.e_shoff)
		return -EIO; /* it had sections: the file is cut short */
	for (uint32_t i = 1; i < image->section_count; i++) {
		r = image_section(image, i, &s.symbols);
		if (r < 0)
			return r;
		r = -ENOENT;
		if (s.symbols.sh_type == type)
			break;
	}
	if (s.symbols.sh_type != type || s.symbols.sh_entsize != sizeof(ElfW(Sym)))
		return -ENOENT;
	r = image_section(image, s.symbols.sh_link, &s.strings);
	if (r < 0)
		return r;
	if (s.strings.sh_type != SHT_STRTAB || s.strings.sh_size >> SOURCE_SHIFT ||
	    s.strings.sh_offset > image->size || s.strings.sh_size > image->size - s.strings.sh_offset)
		return -ENOEXEC;
	if (image->fd < 0 || s.strings.sh_size <= SYMTAB_STRINGS_MAX) {
		s.text = arena_alloc(a, (size_t)s.strings.sh_size + 1);
		if (!s.text)
			return -ENOMEM;
		r = image_read(image, s.strings.sh_offset, s.text, (size_t)s.strings.sh_size);
		if (r < 0)
			return r;
	}
	t->sources[t->source_count++] = s;
	return 0;
}

/* The section a symbol is in; asked for runs of the same one. */
struct section_cache {
	uint32_t   index;
	ElfW(Shdr) section;
};

static bool
in_code_section(const struct image *img, struct section_cache *c, const ElfW(Sym) *sym)
{
	if (sym->st_shndx >= SHN_LORESERVE)
		return false;
	if (c->index != sym->st_shndx) {
		if (image_section(img, sym->st_shndx, &c->section) < 0)
			return false;
		c->index = sym->st_shndx;
	}
	return c->section.sh_flags & SHF_EXECINSTR && sym->st_value >= c->section.sh_addr &&
		sym->st_value - c->section.sh_addr < c->section.sh_size;
}

/* Turns a symbol into an entry, if it names code. */
static bool
entry_of(const struct symtab *t, unsigned source, const struct image *code,
	struct section_cache *c, const ElfW(Sym) *sym, struct symtab_entry *ret)
{
	const struct symtab_source *s = &t->sources[source];
	unsigned                    type = ELF64_ST_TYPE(sym->st_info), rank = 0;
	uint64_t                    size = sym->st_size;

	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS || !sym->st_name ||
	    sym->st_name >= s->strings.sh_size || sym->st_value >= ADDRESS_MAX ||
	    !image_is_code(code, sym->st_value))
		return false;
	/* Exported names are not all names: what has no size could reach over others. */
	if (!size && s->symbols.sh_type == SHT_DYNSYM)
		return false;
	if (type == STT_NOTYPE || !size) {
		if (!in_code_section(s->image, c, sym))
			return false;
		if (type == STT_NOTYPE)
			rank |= RANK_LABEL;
		if (!size) {
			rank |= RANK_UNSIZED;
			size = c->section.sh_addr + c->section.sh_size - sym->st_value;
		}
	}
	if (ELF64_ST_BIND(sym->st_info) == STB_LOCAL)
		rank |= RANK_LOCAL;
	if (s->text) {
		const char *name = s->text + sym->st_name;

		/* $x and $d mark code and data on ARM, .L is the compiler's own. */
		if (!*name || (type == STT_NOTYPE && (*name == '$' || !strncmp(name, ".L", 2))))
			return false;
		/* glibc's private aliases of its own functions come last. */
		if (!strncmp(name, "__GI_", 5))
			rank |= RANK_UNDERSCORES;
		while (*name++ == '_' && (rank & RANK_UNDERSCORES) < RANK_UNDERSCORES)
			rank++;
	}
	ret->key = (uint64_t)sym->st_value << 16 | rank;
	ret->size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
	ret->name = (uint32_t)source << SOURCE_SHIFT | sym->st_name;
	return true;
}

/* One pass over a source: counts its functions, and writes them into room. */
static int
scan(const struct symtab *t, unsigned source, const struct image *code,
	struct symtab_entry *entries, size_t room, size_t *ret_count)
{
	const struct symtab_source *s = &t->sources[source];
	struct section_cache        c = { 0 };
	uint64_t                    left = s->symbols.sh_size / sizeof(ElfW(Sym));
	uint64_t                    at = s->symbols.sh_offset;
	size_t                      n = 0;

	if (left > SYMBOLS_COUNT_MAX)
		return -EFBIG;
	while (left) {
		ElfW(Sym)           batch[BATCH];
		struct symtab_entry e;
		size_t              some = left < BATCH ? (size_t)left : BATCH;
		int                 r = image_read(s->image, at, batch, some * sizeof(*batch));

		if (r < 0)
			return r;
		for (size_t i = 0; i < some; i++) {
			if (!entry_of(t, source, code, &c, &batch[i], &e))
				continue;
			if (entries && n == room)
				return -EIO; /* the file changes under us */
			if (entries)
				entries[n] = e;
			n++;
		}
		left -= some;
		at += some * sizeof(*batch);
	}
	*ret_count = n;
	return 0;
}

/* Sorts by key; other is as large.  Returns whichever of the two holds the result. */
static struct symtab_entry *
sort(struct symtab_entry *entries, struct symtab_entry *other, size_t n)
{
	for (unsigned shift = 0; shift < 64; shift += DIGIT) {
		uint32_t             at[1 << DIGIT] = { 0 }, sum = 0;
		struct symtab_entry *swap = other;
		bool                 same = false;

		for (size_t i = 0; i < n; i++)
			at[entries[i].key >> shift & ((1 << DIGIT) - 1)]++;
		for (unsigned d = 0; d < 1 << DIGIT; d++) {
			uint32_t count = at[d];

			same |= count == n;
			at[d] = sum;
			sum += count;
		}
		if (same)
			continue;
		for (size_t i = 0; i < n; i++)
			other[at[entries[i].key >> shift & ((1 << DIGIT) - 1)]++] = entries[i];
		other = entries;
		entries = swap;
	}
	return entries;
}

/* One entry for each address.  A label inside a sized function ends with it. */
static size_t
clean(struct symtab_entry *entries, size_t n)
{
	uint64_t end = 0; /* of the sized functions so far */
	size_t   kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct symtab_entry *e = &entries[kept];
		uint64_t             address = entries[i].key >> 16;

		if (kept && address == e[-1].key >> 16)
			continue;
		*e = entries[i];
		kept++;
		if (!(e->key & RANK_UNSIZED) && address + e->size > end)
			end = address + e->size;
		else if (e->key & RANK_UNSIZED && address < end && e->size > end - address)
			e->size = (uint32_t)(end - address);
	}
	return kept;
}

int
symtab_take(struct symtab *t, struct arena *a, struct symtab_entry *entries, size_t count)
{
	struct arena         scratch;
	struct symtab_entry *other, *sorted;
	size_t               kept;
	int                  r = -ENOMEM;

	arena_init(&scratch, a->budget);
	other = arena_array(&scratch, count, sizeof(*other));
	if (!other)
		goto out;
	sorted = sort(entries, other, count);
	kept = clean(sorted, count);
	t->entries = arena_array(a, kept, sizeof(*t->entries));
	if (!t->entries)
		goto out;
	memcpy(t->entries, sorted, kept * sizeof(*t->entries));
	t->count = kept;
	r = 0;
out:
	arena_release(&scratch);
	return r;
}

int
symtab_build(struct symtab *t, struct arena *a, const struct image *code)
{
	struct arena         scratch;
	struct symtab_entry *entries;
	size_t               counts[SYMTAB_SOURCES_MAX], n = 0;
	int                  r = 0;

	arena_init(&scratch, a->budget);
	for (unsigned i = 0; i < t->source_count && !r; i++) {
		r = scan(t, i, code, NULL, 0, &counts[i]);
		if (!r)
			n += counts[i];
	}
	if (!r && !n)
		r = -ENOENT;
	if (r < 0)
		goto out;
	r = -ENOMEM;
	entries = arena_array(&scratch, n, sizeof(*entries));
	if (!entries)
		goto out;
	n = 0;
	for (unsigned i = 0; i < t->source_count; i++) {
		size_t had = counts[i];

		r = scan(t, i, code, entries + n, had, &counts[i]);
		if (r < 0)
			goto out;
		n += counts[i];
	}
	r = symtab_take(t, a, entries, n);
out:
	arena_release(&scratch);
	return r;
}

size_t
symtab_find(const struct symtab *t, uint64_t vaddr)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symtab_address(t, middle) <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low, n = 0; i-- && n < LOOK_BACK; n++)
		if (!(t->entries[i].key & RANK_UNSIZED) && vaddr - symtab_address(t, i) < t->entries[i].size)
			return i;
	if (low-- && t->entries[low].key & RANK_UNSIZED &&
	    vaddr - symtab_address(t, low) < t->entries[low].size)
		return low;
	return SYMTAB_NONE;
}

static const char *
source_name(const struct symtab_source *s, uint32_t offset, struct arena *a)
{
	char        buf[SYMTAB_NAME_MAX];
	const char *name = buf, *version;
	size_t      n = (size_t)s->strings.sh_size - offset;

	if (n > SYMTAB_NAME_MAX)
		n = SYMTAB_NAME_MAX;
	if (s->text)
		name = s->text + offset;
	else if (image_read(s->image, s->strings.sh_offset + offset, buf, n) < 0)
		return NULL;
	n = strnlen(name, n);
	/* "memcpy@@GLIBC_2.14" is memcpy to everybody who calls it. */
	version = s->verbatim ? NULL : memchr(name, '@', n);
	if (version && version > name)
		n = (size_t)(version - name);
	if (!n)
		return NULL;
	if (s->text && !s->text[offset + n] && utf8_is_clean(name, n))
		return s->text + offset;
	return utf8_clean(a, name, n);
}

const char *
symtab_name(const struct symtab *t, size_t i, struct arena *a)
{
	return source_name(&t->sources[t->entries[i].name >> SOURCE_SHIFT],
		t->entries[i].name & ((1u << SOURCE_SHIFT) - 1), a);
}

/* The innermost one, and of aliases the global one. */
static bool
data_is_better(const ElfW(Sym) *sym, const ElfW(Sym) *than)
{
	if (!than->st_name || sym->st_size != than->st_size)
		return !than->st_name || sym->st_size < than->st_size;
	return ELF64_ST_BIND(sym->st_info) != STB_LOCAL && ELF64_ST_BIND(than->st_info) == STB_LOCAL;
}

const char *
symtab_data(const struct symtab *t, uint64_t vaddr, struct arena *a, uint64_t *ret_offset)
{
	const struct symtab_source *s = &t->sources[0];
	uint64_t                    left = s->symbols.sh_size / sizeof(ElfW(Sym)), at = s->symbols.sh_offset;
	ElfW(Sym)                   batch[BATCH], best = { 0 };

	if (left > SYMBOLS_COUNT_MAX)
		return NULL;
	while (left) {
		size_t some = left < BATCH ? (size_t)left : BATCH;

		if (image_read(s->image, at, batch, some * sizeof(*batch)) < 0)
			return NULL;
		for (size_t i = 0; i < some; i++)
			if (ELF64_ST_TYPE(batch[i].st_info) == STT_OBJECT && batch[i].st_shndx != SHN_UNDEF &&
			    batch[i].st_name && batch[i].st_name < s->strings.sh_size &&
			    vaddr - batch[i].st_value < batch[i].st_size && data_is_better(&batch[i], &best))
				best = batch[i];
		left -= some;
		at += some * sizeof(*batch);
	}
	*ret_offset = vaddr - best.st_value;
	return best.st_name ? source_name(s, best.st_name, a) : NULL;
}

bool
symtab_needs_image(const struct symtab *t, unsigned source)
{
	return source < t->source_count && !t->sources[source].text;
}
