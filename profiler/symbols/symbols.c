/*
 * symbols.c - names for addresses, from the ELF files of this process.
 *
 *     pc --> mapping --> offset in the file --> ELF address --> function --> name
 *            mappings.c                         image.c     |   symtab.c    demangle/demangle.c
 *                                                           +-> lines, inlined functions
 *                                                               resolve.c, dwarf/dwarf.c
 *
 * The way leads through the offset in the file, not through a load bias: it holds for
 * every mapping of an object, however the loader or somebody's mprotect() has cut it.
 *
 * Without a symbol an address is "object+0x1234", the place where its function begins
 * (ranges.c), so that one function stays one line of a profile.
 *
 * A name is made once and kept until symbols_close(): encoders compare pointers.
 *
 * Why not dladdr(): exported names only, 22 to 519 us an address, and it takes the
 * loader's lock.  Why not libdw: it has no limit of memory.
 *
 * Tests: tests/symbols/test_symbols.c, tests/symbols/names.t
 */
#include <config.h>

#include "symbols_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "demangle/demangle.h"

struct name {
	const char *name, *system_name;
};

/* Keys of the names: a function of an object, or an address that has none. */
#define KEY_UNNAMED ((uint64_t)1 << 63)
#define KEY_STUB    ((uint64_t)1 << 62)
#define KEY_TEXT    ((uint64_t)1 << 61) /* and where a text of the resolver's is */
#define KEY_INDEX   40

/* places NULL: the mappings of the process. */
static int
open_view(size_t limit_bytes, const struct symbol_mapping *places, size_t count, struct symbols **ret)
{
	struct arena_budget budget = { 0, limit_bytes };
	struct arena        arena;
	struct symbols     *s;
	int                 r;

	arena_init(&arena, &budget);
	s = arena_alloc(&arena, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->budget = budget;
	s->arena = arena;
	s->arena.budget = &s->budget;
	table_init(&s->names, &s->budget);
	table_init(&s->files, &s->budget);
	resolver_init(&s->resolver, &s->arena);
	s->cache = cache_open();
	r = places ? mappings_take(s, places, count) : mappings_read(s);
	if (r < 0) {
		symbols_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

int
symbols_open(size_t limit_bytes, struct symbols **ret)
{
	return open_view(limit_bytes, NULL, 0, ret);
}

int
symbols_open_places(size_t limit_bytes, const struct symbol_mapping *places, size_t count, struct symbols **ret)
{
	return open_view(limit_bytes, places, count, ret);
}

void
symbols_close(struct symbols *s)
{
	struct arena_budget budget;
	struct arena        arena;

	if (!s)
		return;
	for (size_t i = 0; i < s->object_count; i++)
		object_release(&s->objects[i]);
	table_release(&s->names);
	table_release(&s->files);
	resolver_release(&s->resolver);
	cache_close(s->cache);
	/* s itself is in there. */
	budget = s->budget;
	arena = s->arena;
	arena.budget = &budget;
	arena_release(&arena);
}

static int
read_object(struct symbols *s, struct object *o)
{
	int r;

	if (o->state != OBJECT_UNREAD)
		return 0;
	r = object_read(o, &s->arena, &s->open_files);
	if (o->exported || (r < 0 && r != -ENOENT)) {
		s->unread++;
		o->partly = true;
	}
	return r;
}

static const struct name *
name_find(struct symbols *s, uint64_t key)
{
	return (const struct name *)(uintptr_t)table_get(&s->names, key);
}

static const struct name *
name_add(struct symbols *s, uint64_t key, const char *name, const char *system_name)
{
	struct name *n = arena_alloc(&s->arena, sizeof(*n));

	if (!n || table_put(&s->names, key, (uintptr_t)n) < 0)
		return NULL;
	n->name = name;
	n->system_name = system_name;
	return n;
}

static const struct name *
function_name(struct symbols *s, const struct object *o, const struct symtab *t, size_t i)
{
	uint64_t           key = (uint64_t)(o - s->objects) << KEY_INDEX | i;
	const struct name *n;
	const char        *name, *readable;

	if (t == &o->stubs)
		key |= KEY_STUB;
	n = name_find(s, key);
	if (n)
		return n;
	name = symtab_name(t, i, &s->arena);
	if (!name)
		return NULL;
	readable = demangle(name, &s->demangling, &s->arena);
	return name_add(s, key, readable ? readable : name, name);
}

/* The table that knows the address, with the index in it; or NULL. */
static const struct symtab *
table_of(const struct object *o, uint64_t vaddr, size_t *ret_index)
{
	const struct symtab *tables[] = { &o->stubs, &o->table };

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		*ret_index = symtab_find(tables[i], vaddr);
		if (*ret_index != SYMTAB_NONE)
			return tables[i];
	}
	return NULL;
}

static const struct name *
unnamed(struct symbols *s, struct object *o, uintptr_t pc, uint64_t vaddr)
{
	size_t             range;
	const struct name *n;
	char               number[32];
	size_t             base = strlen(o->base), digits;
	char              *text;
	int                r = object_read_ranges(o, &s->arena);

	o->partly |= r < 0 && r != -ENOENT;
	range = symtab_find(&o->ranges, vaddr);
	if (range != SYMTAB_NONE) {
		pc -= (uintptr_t)(vaddr - symtab_address(&o->ranges, range));
		vaddr = symtab_address(&o->ranges, range);
	}
	n = name_find(s, KEY_UNNAMED | pc);
	if (n)
		return n;
	digits = (size_t)snprintf(number, sizeof(number), "+0x%llx", (unsigned long long)vaddr);
	text = arena_alloc(&s->arena, base + digits + 1);
	if (!text)
		return NULL;
	memcpy(text, o->base, base);
	memcpy(text + base, number, digits);
	return name_add(s, KEY_UNNAMED | pc, text, text);
}

/* The ELF address of one of the process, in an object that is read now. */
static bool
locate(struct symbols *s, const struct mapping *m, uintptr_t pc, uint64_t *ret_vaddr)
{
	*ret_vaddr = mappings_offset(m, pc);
	read_object(s, m->object);
	return m->object->state == OBJECT_READ && image_vaddr(&m->object->image, *ret_vaddr, ret_vaddr);
}

static const struct name *
text_name(struct symbols *s, const char *text)
{
	uint64_t           key = KEY_TEXT | (uintptr_t)text;
	const struct name *n = name_find(s, key);
	const char        *readable;

	if (n)
		return n;
	readable = demangle(text, &s->demangling, &s->arena);
	return name_add(s, key, readable ? readable : text, text);
}

/* Sets what debug information knows better than the symbol table: frames[0] is what
 * that one says. */
static unsigned
add_lines(struct symbols *s, const struct resolved *known, struct symbol_frame *frames, unsigned max)
{
	unsigned count = known->count < max ? known->count : max;

	for (unsigned i = count; i--;) {
		const struct dwarf_frame *from = &known->frames[i];
		const struct name        *n = from->name ? text_name(s, from->name) : NULL;

		frames[i] = frames[0];
		/* Some C++ functions have but their last name there: the table knows more. */
		if (i + 1 == known->count && !from->linkage && !strncmp(frames[0].system_name, "_Z", 2))
			n = NULL;
		if (n) {
			frames[i].name = n->name;
			frames[i].system_name = n->system_name;
			frames[i].named = true;
		}
		frames[i].file = from->file;
		frames[i].line = (int)from->line;
		frames[i].start_line = (int)from->start_line;
	}
	return count;
}

/* From the files. */
static unsigned
frames_read(struct symbols *s, const struct mapping *m, uintptr_t pc, struct symbol_frame *frames, unsigned max)
{
	struct object         *o = m->object;
	const struct symtab   *t = NULL;
	const struct name     *n = NULL;
	const struct resolved *known;
	uint64_t               vaddr, offset = 0;
	size_t                 f;
	bool                   named;

	if (locate(s, m, pc, &vaddr))
		t = table_of(o, vaddr, &f);
	if (t)
		n = function_name(s, o, t, f);
	named = n != NULL;
	if (n)
		offset = vaddr - symtab_address(t, f);
	else
		n = unnamed(s, o, pc, vaddr);
	frames[0] = (struct symbol_frame){
		.name = n ? n->name : o->base, /* out of memory: the object alone */
		.system_name = n ? n->system_name : o->base,
		.offset = offset,
		.object = o->shown,
		.named = named,
	};
	o->partly |= !n || o->state != OBJECT_READ;
	known = resolver_find(&s->resolver, pc);
	return known ? add_lines(s, known, frames, max) : 1;
}

/* What an earlier request has found; 0: nothing. */
static unsigned
frames_cached(struct symbols *s, const struct mapping *m, uintptr_t pc, struct symbol_frame *frames, unsigned max)
{
	struct object *o = m->object;
	unsigned       count;

	if (!s->cache)
		return 0;
	if (!o->cached)
		o->cached = cache_object(s->cache, o->build_id, o->base) + 1;
	count = cache_find(s->cache, o->cached - 1, mappings_offset(m, pc), s->lines, frames, max);
	for (unsigned i = 0; i < count; i++)
		frames[i].object = o->shown;
	return count;
}

unsigned
symbols_frames(struct symbols *s, uintptr_t pc, struct symbol_frame *frames, unsigned max)
{
	int             i = symbols_mapping_find(s, pc);
	struct mapping *m = &s->mappings[i < 0 ? 0 : i];
	unsigned        count;

	if (i < 0 || !max)
		return 0;
	count = frames_cached(s, m, pc, frames, max);
	if (count)
		return count;
	count = frames_read(s, m, pc, frames, max);
	if (s->cache && !m->object->partly && (count < max || max >= SYMBOLS_FRAMES_MAX))
		cache_add(s->cache, m->object->cached - 1, mappings_offset(m, pc), s->lines, frames, count);
	return count;
}

/* The addresses that lie in files, each once, by object; *ret_ends is where each ends. */
static struct resolve_pc *
sort_out(struct symbols *s, struct arena *scratch, const uintptr_t *pcs, size_t count, uint32_t **ret_ends)
{
	struct resolve_pc *all = arena_array(scratch, count, sizeof(*all));
	struct resolve_pc *sorted = arena_array(scratch, count, sizeof(*sorted));
	uint32_t          *ends = arena_array(scratch, s->object_count + 1, sizeof(*ends)), sum = 0;
	struct table       seen;
	size_t             n = 0;

	if (!all || !sorted || !ends)
		return NULL;
	table_init(&seen, scratch->budget);
	for (size_t i = 0; i < count; i++) {
		int                 m = symbols_mapping_find(s, pcs[i]);
		struct symbol_frame frame;

		if (m < 0 || frames_cached(s, &s->mappings[m], pcs[i], &frame, 1))
			continue;
		if (resolver_find(&s->resolver, pcs[i]) || table_get(&seen, pcs[i]))
			continue;
		if (table_put(&seen, pcs[i], 1) < 0) {
			s->mappings[m].object->partly = true;
			continue;
		}
		if (!locate(s, &s->mappings[m], pcs[i], &all[n].vaddr))
			continue;
		all[n].pc = pcs[i];
		all[n].object = (uint32_t)(s->mappings[m].object - s->objects);
		ends[all[n++].object]++;
	}
	table_release(&seen);
	for (size_t i = 0; i < s->object_count; i++) {
		uint32_t here = ends[i];

		ends[i] = sum;
		sum += here;
	}
	for (size_t i = 0; i < n; i++)
		sorted[ends[all[i].object]++] = all[i];
	*ret_ends = ends;
	return sorted;
}

void
symbols_resolve(struct symbols *s, const uintptr_t *pcs, size_t count)
{
	struct arena       scratch;
	struct resolve_pc *sorted;
	uint32_t          *ends, start = 0;
	int                r;

	s->lines = true;
	arena_init(&scratch, &s->budget);
	sorted = sort_out(s, &scratch, pcs, count, &ends);
	s->unlined += !sorted;
	for (size_t i = 0; !sorted && i < s->object_count; i++)
		s->objects[i].partly = true;
	for (size_t i = 0; sorted && i < s->object_count; i++) {
		if (ends[i] > start) {
			r = resolver_read(&s->resolver, &s->objects[i], sorted + start, ends[i] - start);
			/* Broken in parts, or over the limit; not: without any. */
			s->unlined += r < 0 && r != -ENOENT;
			s->objects[i].partly |= r < 0 && r != -ENOENT;
		}
		start = ends[i];
	}
	arena_release(&scratch);
}

unsigned
symbols_unlined(const struct symbols *s)
{
	return s->unlined;
}

unsigned
symbols_unread(const struct symbols *s)
{
	return s->unread;
}
