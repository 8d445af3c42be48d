/*
 * mappings.c - which mapping of which file an address lies in.
 *
 * Read once from /proc/self/maps when a view is opened; those that were unloaded by then
 * come from the list of generations and go behind the others, at synthetic addresses if
 * somebody took theirs (unloaded.c).
 *
 * What a stranger would get wrong: executable mappings that follow each other in the
 * file and in memory are one (an mprotect() on a piece of code cuts it in three);
 * anonymous ones without a name (JIT code, trampolines) are none at all.  Mapping 0 is
 * where the program's entry point is, whatever its path looks like now.
 *
 * Tests: tests/symbols/test_symbols.c, tests/symbols/names.t, tests/model/unloaded_plugins.t
 */
#include <config.h>

#include "symbols_state.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

#include "maps.h"
#include "process.h"
#include "utf8.h"

static bool
is_wanted(const struct maps_line *l)
{
	return l->executable && l->path[0];
}

static bool
same_file(const struct maps_line *l, const struct object *o)
{
	return l->device == o->device && l->inode == o->inode && !strcmp(l->path, o->path);
}

/* NULL without memory. */
static struct object *
object_new(struct symbols *s, const char *path, uint64_t device, uint64_t inode, bool deleted)
{
	struct object *o = &s->objects[s->object_count];
	size_t         n = strlen(path);

	o->path = arena_strndup(&s->arena, path, n);
	if (!o->path)
		return NULL;
	o->shown = utf8_is_clean(o->path, n) ? o->path : utf8_clean(&s->arena, o->path, n);
	if (!o->shown)
		return NULL;
	o->base = strrchr(o->shown, '/');
	o->base = o->base && o->base[1] ? o->base + 1 : o->shown;
	o->device = device;
	o->inode = inode;
	o->deleted = deleted;
	o->memory = path[0] == '[' && !inode;
	o->fd = o->debug_fd = -1;
	s->object_count++;
	return o;
}

static struct object *
object_add(struct symbols *s, const struct maps_line *l, const struct maps_line *first)
{
	struct object *o;
	uint64_t       key = l->inode * 0x10001 + l->device, have;

	have = table_get(&s->files, key);
	if (have && same_file(l, &s->objects[have - 1]))
		return &s->objects[have - 1];
	o = object_new(s, l->path, l->device, l->inode, l->deleted);
	if (!o)
		return NULL;
	o->start = l->start;
	o->limit = l->limit;
	/* The vsyscall page cannot be read, and has no header. */
	if (first && strcmp(l->path, "[vsyscall]")) {
		o->header = first->start;
		o->header_size = first->limit - first->start;
	}
	/* Names in brackets have no inode and share a key; each line is its own object. */
	if (!have && table_put(&s->files, key, s->object_count) < 0)
		return NULL;
	object_read_build_id(o);
	return o;
}

static int
mapping_add(struct symbols *s, const struct maps_line *l, const struct maps_line *first)
{
	struct mapping *m = s->mappings + s->mapping_count;
	struct object  *o = object_add(s, l, first);

	if (!o)
		return -ENOMEM;
	if (s->mapping_count && m[-1].object == o && m[-1].shown.limit == l->start &&
	    m[-1].shown.offset + (m[-1].shown.limit - m[-1].shown.start) == l->offset) {
		m[-1].shown.limit = l->limit;
		return 0;
	}
	m->object = o;
	m->shown = (struct symbol_mapping){ l->start, l->limit, l->offset, o->shown, o->build_id, false };
	m->start = l->start;
	s->mapping_count++;
	return 0;
}

/* The one with the entry point goes to the front; the others keep their order. */
static void
main_first(struct symbols *s)
{
	uintptr_t      entry = process_auxv(AT_ENTRY);
	struct mapping m;

	for (size_t i = 0; i < s->mapping_count; i++) {
		m = s->mappings[i];
		if (entry < m.shown.start || entry >= m.shown.limit)
			continue;
		m.object->main = true;
		memmove(s->mappings + 1, s->mappings, i * sizeof(m));
		s->mappings[0] = m;
		return;
	}
}

static int
mapping_add_gone(struct symbols *s, size_t i)
{
	const struct generation *g = &s->unloaded.all[i];
	struct mapping          *m = s->mappings + s->mapping_count;
	struct object           *o;

	if (g->loaded || !*g->path)
		return 0;
	o = object_new(s, g->path, g->device, g->inode, g->deleted);
	if (!o)
		return -ENOMEM;
	o->gone = true;
	memcpy(o->build_id, g->build_id, sizeof(o->build_id));
	m->object = o;
	m->start = g->start;
	m->shown = (struct symbol_mapping){ g->start + s->unloaded.shift[i], g->limit + s->unloaded.shift[i], g->offset,
					    o->shown, o->build_id, true };
	s->unloaded.mappings[i] = (uint32_t)++s->mapping_count;
	return 0;
}

static bool
is_mapped(const void *arg, uintptr_t start, uintptr_t limit)
{
	const struct symbols *s = arg;

	for (size_t i = 0; i < s->loaded_count; i++)
		if (s->mappings[i].shown.start < limit && start < s->mappings[i].shown.limit)
			return true;
	return false;
}

static int
add_gone(struct symbols *s)
{
	int r = 0;

	s->loaded_count = s->mapping_count;
	unloaded_place(&s->unloaded, is_mapped, s);
	for (size_t i = 0; i < s->unloaded.count && !r; i++)
		r = mapping_add_gone(s, i);
	return r;
}

/* How many lines "from-to r-xp ..." there are: of all mappings the few that matter. */
static size_t
code_lines(const char *text, size_t size)
{
	const char *end = text + size, *space;
	size_t      n = 0;

	while (text && text < end) {
		space = memchr(text, ' ', (size_t)(end - text));
		n += space && end - space > 3 && space[3] == 'x';
		text = memchr(text, '\n', (size_t)(end - text));
		text += text != NULL;
	}
	return n;
}

int
mappings_read(struct symbols *s)
{
	struct maps      maps, copy;
	struct maps_line l, first = { .path = NULL };
	size_t           lines = 0;
	int              r;

	generations_look();
	r = unloaded_read(&s->unloaded, &s->arena);
	if (!r)
		r = maps_read(&maps, &s->budget);
	/* A profile with bare addresses is better than none. */
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	lines = code_lines(maps.text, maps.size);
	copy = maps;
	lines += s->unloaded.count;
	s->mappings = arena_array(&s->arena, lines + 1, sizeof(*s->mappings));
	s->objects = arena_array(&s->arena, lines + 1, sizeof(*s->objects));
	r = s->mappings && s->objects ? 0 : -ENOMEM;
	while (!r && maps_next(&copy, &l)) {
		/* The file's first bytes, where its header and notes are. */
		if (l.path[0] && !l.offset)
			first = l;
		if (is_wanted(&l))
			r = mapping_add(s, &l,
				first.path && first.device == l.device && first.inode == l.inode &&
						!strcmp(first.path, l.path) ? &first : NULL);
	}
	maps_release(&maps);
	if (!r)
		main_first(s);
	return r ? r : add_gone(s);
}

static int
place_add(struct symbols *s, const struct symbol_mapping *place, struct strings *paths)
{
	struct mapping *m = s->mappings + s->mapping_count;
	struct object  *o;
	uint64_t        id;
	bool            is_new;
	int             r = strings_id(paths, place->path, strlen(place->path), true, &id, &is_new);

	if (r < 0)
		return r;
	o = is_new ? object_new(s, place->path, 0, 0, false) : &s->objects[id];
	if (!o)
		return -ENOMEM;
	if (is_new && strlen(place->build_id) < sizeof(o->build_id))
		strcpy(o->build_id, place->build_id);
	o->foreign = true;
	o->memory = *place->path != '/';
	m->object = o;
	m->shown = *place;
	m->shown.path = o->shown;
	m->shown.build_id = o->build_id;
	m->start = place->start;
	s->mapping_count++;
	return 0;
}

int
mappings_take(struct symbols *s, const struct symbol_mapping *places, size_t count)
{
	struct strings paths;
	int            r;

	s->mappings = arena_array(&s->arena, count + 1, sizeof(*s->mappings));
	s->objects = arena_array(&s->arena, count + 1, sizeof(*s->objects));
	r = s->mappings && s->objects ? 0 : -ENOMEM;
	strings_init(&paths, &s->arena);
	for (size_t i = 0; i < count && !r; i++)
		r = place_add(s, &places[i], &paths);
	strings_release(&paths);
	s->loaded_count = s->mapping_count;
	return r;
}

/* ---- looked up ---- */

size_t
symbols_mapping_count(const struct symbols *s)
{
	return s->mapping_count;
}

const struct symbol_mapping *
symbols_mapping(const struct symbols *s, size_t i)
{
	return i < s->mapping_count ? &s->mappings[i].shown : NULL;
}

static bool
contains(const struct mapping *m, uintptr_t pc)
{
	return pc >= m->shown.start && pc < m->shown.limit;
}

static int
find_loaded(const struct symbols *s, uintptr_t pc)
{
	size_t low = 1, high = s->loaded_count;

	if (high && contains(&s->mappings[0], pc))
		return 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (contains(&s->mappings[middle], pc))
			return (int)middle;
		if (s->mappings[middle].shown.start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return -1;
}

/* Without its tag; what is above all programs has none. */
static uintptr_t
untagged(uintptr_t pc)
{
	return pc >> GENERATIONS_PC_BITS <= GENERATIONS_TAG_MAX ? pc & GENERATIONS_PC_MASK : pc;
}

int
symbols_mapping_find(const struct symbols *s, uintptr_t pc)
{
	const struct generation *g = generations_find(s->unloaded.all, s->unloaded.count, pc);

	if (g && !g->loaded)
		return (int)s->unloaded.mappings[g - s->unloaded.all] - 1;
	/* An object that came and went between two looks. */
	if (!g && pc != untagged(pc))
		return -1;
	return find_loaded(s, untagged(pc));
}

uintptr_t
symbols_address(const struct symbols *s, uintptr_t pc)
{
	int i = symbols_mapping_find(s, pc);

	pc = untagged(pc);
	return i < 0 ? pc : pc - s->mappings[i].start + s->mappings[i].shown.start;
}

uintptr_t
symbols_pc(const struct symbols *s, uintptr_t address)
{
	return unloaded_tagged(&s->unloaded, address);
}

uint64_t
mappings_offset(const struct mapping *m, uintptr_t pc)
{
	return untagged(pc) - m->start + m->shown.offset;
}
