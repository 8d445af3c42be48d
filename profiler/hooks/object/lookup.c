/*
 * lookup.c - finds functions by name in the objects of this process, without the loader.
 *
 * Why not dlsym(): the first call of malloc may come while its caller holds any lock of the
 * C library.  A dlsym() that finds nothing allocates, and its message is translated,
 * which takes the lock that setlocale() holds already and gives it back a second time:
 * curl stood before the first line of main() for ever.  dlopen() runs constructors whose
 * turn has not come.  So the loader's list of objects is read, and the hash table
 * of each, as the loader itself would.
 *
 *     _r_debug.r_map ── program ── preloaded ── libraries, breadth first ── opened later
 *                                                                     └ the end, at our first call
 *
 * What a stranger would get wrong:
 * - The list stands in the order in which calls are bound; only what dlopen() adds
 *   is not among those that everybody sees.  It goes to the end, and a dlopen() allocates,
 *   so what is the end at our first call stays the end.  The objects before it are
 *   never taken away.
 * - The loader relocates the addresses of a dynamic section in place, but not where the
 *   section cannot be written to (the vDSO, RISC-V).  What is below the load address was not
 *   relocated.  That of the two readings which is nearer to the section is not always the
 *   right one: under valgrind programs start at 1 MiB, and many are larger.
 * - A name may be there in several versions.  The hidden ones are for programs linked long
 *   ago and count only when asked for by version.
 * - A program that is not position independent and takes a function's address has an undefined
 *   symbol of that name with the address of its own PLT entry.  Undefined is not found.
 * - This is compiled without builtins: a memcmp() of the compiler's would be a call.
 *
 * Tests: tests/whole/every_program.t, tests/hooks/interposition.t.
 */
#include "lookup.h"

#include <elf.h>

#define HIDDEN_VERSION 0x8000

/* What is needed of an object's dynamic section. */
struct tables {
	uintptr_t           base;
	const ElfW(Sym)    *symbols;
	const char         *strings;
	const uint32_t     *gnu_hash;
	const ElfW(Word)   *hash; /* the older one, for those that have no other */
	const ElfW(Half)   *versions;
	const ElfW(Verdef) *definitions;
	size_t              definition_count;
};

extern const ElfW(Dyn) own_section[] __asm__("_DYNAMIC") HIDDEN; /* tells which object of the list is ours */

static const struct link_map *the_end;

static int
is_equal(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static uint32_t
gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

static uint32_t
old_hash(const char *name)
{
	uint32_t h = 0, top;

	for (; *name; name++) {
		h = (h << 4) + (unsigned char)*name;
		top = h & 0xf0000000;
		h = (h ^ top >> 24) & ~top;
	}
	return h;
}

/* As it stands there, or counted from the load address. */
static const void *
address_of(uintptr_t base, const ElfW(Dyn) *entry)
{
	uintptr_t address = entry->d_un.d_ptr;

	/* A base above the section is a difference below 0: that of an object made for a higher place. */
	if (address < base && base <= (uintptr_t)entry)
		address += base;
	return (const void *)address;
}

static int
tables_read(struct tables *t, uintptr_t base, const ElfW(Dyn) *entry)
{
	*t = (struct tables){ .base = base };
	for (; entry && entry->d_tag != DT_NULL; entry++)
		switch (entry->d_tag) {
		case DT_SYMTAB:
			t->symbols = address_of(base, entry);
			break;
		case DT_STRTAB:
			t->strings = address_of(base, entry);
			break;
		case DT_GNU_HASH:
			t->gnu_hash = address_of(base, entry);
			break;
		case DT_HASH:
			t->hash = address_of(base, entry);
			break;
		case DT_VERSYM:
			t->versions = address_of(base, entry);
			break;
		case DT_VERDEF:
			t->definitions = address_of(base, entry);
			break;
		case DT_VERDEFNUM:
			t->definition_count = entry->d_un.d_val;
			break;
		default:
			break;
		}
	return t->symbols && t->strings && (t->gnu_hash || t->hash);
}

static int
has_version(const struct tables *t, uint32_t symbol, const char *version)
{
	const ElfW(Verdef) *d = t->definitions;
	ElfW(Half)          index;

	if (!version)
		return !t->versions || !(t->versions[symbol] & HIDDEN_VERSION);
	if (!t->versions || !d)
		return 0;
	index = t->versions[symbol] & (HIDDEN_VERSION - 1);
	for (size_t i = 0; i < t->definition_count; i++) {
		const ElfW(Verdaux) *name = (const void *)((const char *)d + d->vd_aux);

		if (d->vd_ndx == index)
			return is_equal(t->strings + name->vda_name, version);
		d = (const void *)((const char *)d + d->vd_next);
	}
	return 0;
}

/* Is this symbol one that a call could be bound to, and the one that is asked for? */
static int
is_wanted(const struct tables *t, uint32_t symbol, const struct lookup *l)
{
	const ElfW(Sym) *s = &t->symbols[symbol];
	unsigned         type = ELF64_ST_TYPE(s->st_info), bind = ELF64_ST_BIND(s->st_info);
	unsigned         visibility = ELF64_ST_VISIBILITY(s->st_other);

	if (s->st_shndx == SHN_UNDEF || s->st_value == 0)
		return 0;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_OBJECT && type != STT_NOTYPE)
		return 0;
	if (bind != STB_GLOBAL && bind != STB_WEAK && bind != STB_GNU_UNIQUE)
		return 0;
	if (visibility == STV_HIDDEN || visibility == STV_INTERNAL)
		return 0;
	return is_equal(t->strings + s->st_name, l->name) && has_version(t, symbol, l->version);
}

/* Its number; 0: not there. */
static uint32_t
find_gnu(const struct tables *t, const struct lookup *l)
{
	uint32_t          buckets = t->gnu_hash[0], first = t->gnu_hash[1];
	uint32_t          words = t->gnu_hash[2], shift = t->gnu_hash[3], symbol;
	const ElfW(Addr) *bloom = (const ElfW(Addr) *)(t->gnu_hash + 4);
	const uint32_t   *bucket = (const uint32_t *)(bloom + words), *chain = bucket + buckets;
	const uint32_t    bits = 8 * sizeof(*bloom);
	ElfW(Addr)        word;

	if (!buckets || !words)
		return 0;
	word = bloom[l->hash / bits & (words - 1)];
	if (!(word >> l->hash % bits & word >> (l->hash >> shift) % bits & 1))
		return 0;
	symbol = bucket[l->hash % buckets];
	if (symbol < first)
		return 0;
	for (;; symbol++) {
		uint32_t hash = chain[symbol - first];

		if ((hash | 1) == (l->hash | 1) && is_wanted(t, symbol, l))
			return symbol;
		if (hash & 1)
			return 0;
	}
}

static uint32_t
find_old(const struct tables *t, const struct lookup *l)
{
	uint32_t          buckets = t->hash[0], symbol;
	const ElfW(Word) *bucket = t->hash + 2, *chain = bucket + buckets;

	if (!buckets)
		return 0;
	for (symbol = bucket[old_hash(l->name) % buckets]; symbol; symbol = chain[symbol])
		if (is_wanted(t, symbol, l))
			return symbol;
	return 0;
}

static void *
find(const struct tables *t, const struct lookup *l)
{
	uint32_t         symbol = t->gnu_hash ? find_gnu(t, l) : find_old(t, l);
	const ElfW(Sym) *s = &t->symbols[symbol];
	uintptr_t        address = s->st_value + (s->st_shndx == SHN_ABS ? 0 : t->base);

	if (!symbol)
		return NULL;
	return ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC ? arch_resolve(address) : (void *)address;
}

void *
lookup_in(uintptr_t base, const ElfW(Dyn) *dynamic, const char *name)
{
	struct lookup l = { .name = name, .hash = gnu_hash(name) };
	struct tables t;

	return tables_read(&t, base, dynamic) ? find(&t, &l) : NULL;
}

/* Another copy of the hooks: its functions would only lead on. */
static int
is_copy(const struct tables *t)
{
	static const char             name[] = "component_hooks";
	const struct lookup           l = { .name = name, .hash = gnu_hash(name) };
	const struct component_hooks *other = find(t, &l);

	return other && other != &hooks_self && other->kind == HOOKS_REAL && other->version >= HOOKS_VERSION;
}

static const struct link_map *
last_object(void)
{
	const struct link_map *end = __atomic_load_n(&the_end, __ATOMIC_RELAXED);

	if (end)
		return end;
	for (end = _r_debug.r_map; end && end->l_next; end = end->l_next)
		;
	__atomic_store_n(&the_end, end, __ATOMIC_RELAXED);
	return end;
}

static size_t
look(const struct link_map *object, const struct tables *t, struct lookup *names, size_t count)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		if (names[i].address)
			continue;
		names[i].address = find(t, &names[i]);
		names[i].object = names[i].address ? object : NULL;
		found += names[i].address != NULL;
	}
	return found;
}

static int
look_all(const struct link_map *object, int copies_too, struct lookup *names, size_t count)
{
	const struct link_map *end = last_object();
	size_t                 left = 0;
	struct tables          t;
	int                    copies = 0;

	for (size_t i = 0; i < count; i++) {
		names[i].hash = gnu_hash(names[i].name);
		left += names[i].address == NULL;
	}
	for (; object && left; object = object == end ? NULL : object->l_next) {
		if (!tables_read(&t, object->l_addr, object->l_ld))
			continue;
		if (!copies_too && is_copy(&t))
			copies++;
		else
			left -= look(object, &t, names, count);
	}
	return copies;
}

int
lookup_behind(struct lookup *names, size_t count)
{
	const struct link_map *object = _r_debug.r_map;

	while (object && object->l_ld != own_section)
		object = object->l_next;
	return look_all(object ? object->l_next : _r_debug.r_map, 0, names, count);
}

void
lookup_first(struct lookup *names, size_t count)
{
	look_all(_r_debug.r_map, 1, names, count);
}
