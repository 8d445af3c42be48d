/*
 * legacy_map.c - the mappings of a profile that has no names, and names for its addresses.
 *
 *     address ──▶ mapping ──▶ its file, if it is here ──▶ function, file, line (profiler/symbols/)
 *                                          else       ──▶ "object+0x1234"
 *
 * What a stranger would get wrong:
 *  - The file that has the path now is taken for the one that was mapped: these profiles have no build ids.  Where it
 *    was made anew since, names are wrong, as those of go tool pprof are.
 *  - An address before a mapping may be the mapping's, if the file's beginning would lie there: some writers leave a
 *    first part out.
 *  - The program is the first mapping whose name is no library's; pprof shows it as the profile's file.
 *
 * Tests: tests/componentctl/legacy.t, test_read.c
 */
#include <config.h>

#include "legacy_map.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "order.h"
#include "symbols.h"

#define FIELDS_MAX 6
#define DELETED    " (deleted)"

struct field {
	const char *at;
	size_t      size;
};

static bool
next_field(const char **at, const char *end, struct field *ret)
{
	while (*at < end && isspace((unsigned char)**at))
		++*at;
	ret->at = *at;
	while (*at < end && !isspace((unsigned char)**at))
		++*at;
	ret->size = (size_t)(*at - ret->at);
	return ret->size != 0;
}

/* Digits of f from *at on; false: none, or too many. */
static bool
take_hex(const struct field *f, size_t *at, uint64_t *ret)
{
	size_t first;

	if (f->size - *at > 2 && f->at[*at] == '0' && f->at[*at + 1] == 'x')
		*at += 2;
	first = *at;
	for (*ret = 0; *at < f->size && isxdigit((unsigned char)f->at[*at]); ++*at) {
		int c = tolower((unsigned char)f->at[*at]);

		*ret = *ret << 4 | (uint64_t)(c > '9' ? c - 'a' + 10 : c - '0');
	}
	return *at > first && *at - first <= 16;
}

static bool
is_hex(const struct field *f, uint64_t *ret)
{
	size_t at = 0;

	return f->size && take_hex(f, &at, ret) && at == f->size;
}

/* "400000-401000" or, with a blank behind it, "0x400000-0x401000:". */
static bool
is_range(const struct field *f, struct pprof_mapping *ret)
{
	size_t at = 0;

	if (!take_hex(f, &at, &ret->start) || at == f->size || f->at[at++] != '-' || !take_hex(f, &at, &ret->limit))
		return false;
	return (at == f->size || (f->at[at] == ':' && at + 1 == f->size)) && ret->start < ret->limit;
}

static bool
is_made_of(const struct field *f, const char *bytes)
{
	for (size_t i = 0; i < f->size; i++)
		if (!f->at[i] || !strchr(bytes, f->at[i]))
			return false;
	return f->size != 0;
}

/* From where a field begins to the end: a path may have blanks in it. */
static struct field
rest_of(const struct field *f, const char *end)
{
	size_t size;

	while (end > f->at && isspace((unsigned char)end[-1]))
		end--;
	size = (size_t)(end - f->at);
	if (size > sizeof(DELETED) - 1 && !memcmp(end - (sizeof(DELETED) - 1), DELETED, sizeof(DELETED) - 1))
		size -= sizeof(DELETED) - 1;
	return (struct field){ f->at, size };
}

/* false: it is no mapping of code. */
static bool
parse(const char *at, const char *end, struct pprof_mapping *ret, struct field *path)
{
	struct field f[FIELDS_MAX] = { { NULL, 0 } };
	unsigned     n = 0, i = 1;
	uint64_t     offset;

	while (n < FIELDS_MAX && next_field(&at, end, &f[n]))
		n++;
	*ret = (struct pprof_mapping){ .file = "", .build_id = "" };
	*path = (struct field){ "", 0 };
	if (!n || !is_range(&f[0], ret))
		return false;
	if (n > i && is_made_of(&f[i], "-rwxps")) {
		if (!memchr(f[i].at, 'x', f[i].size))
			return false;
		i++;
	}
	if (n > i + 2 && is_hex(&f[i], &ret->offset) && memchr(f[i + 1].at, ':', f[i + 1].size) &&
		is_made_of(&f[i + 2], "0123456789")) {
		if (n > i + 3)
			*path = rest_of(&f[i + 3], end);
		return true;
	}
	ret->offset = 0;
	if (n > i)
		*path = f[i];
	if (n > i + 1 && f[i + 1].size > 3 && !memcmp(f[i + 1].at, "(@", 2) && f[i + 1].at[f[i + 1].size - 1] == ')')
		if (is_hex(&(struct field){ f[i + 1].at + 2, f[i + 1].size - 3 }, &offset))
			ret->offset = offset;
	return true;
}

static bool
is_library(const char *path)
{
	const char *so = strstr(path, ".so");

	for (; so; so = strstr(so + 1, ".so"))
		if (!so[3] || ((so[3] == '.' || so[3] == '_') && isdigit((unsigned char)so[4])))
			return true;
	return false;
}

static void
main_first(struct pprof *p)
{
	for (size_t i = 0; i < p->mapping_count; i++) {
		struct pprof_mapping m = p->mappings[i];

		if (!*m.file || *m.file == '[' || is_library(m.file))
			continue;
		p->mappings[i] = p->mappings[0];
		p->mappings[0] = m;
		break;
	}
	p->object = p->mapping_count ? p->mappings[0].file : "";
}

static int
no_memory(struct component_error *err)
{
	component_error_set(err, "takes more than the %zu MiB of memory that there are for a profile", READ_MEMORY_MAX >> 20);
	return -ENOMEM;
}

int
legacy_map_read(const char *text, size_t size, struct pprof *p, struct component_error *err)
{
	const char          *end = text + size, *next;
	struct pprof_mapping m;
	struct field         path;
	size_t               lines = 1, room;

	for (const char *c = text; c < end && (c = memchr(c, '\n', (size_t)(end - c))); c++)
		lines++;
	room = lines < LEGACY_MAP_MAX ? lines : LEGACY_MAP_MAX;
	p->mappings = arena_array(&p->arena, room + 1, sizeof(*p->mappings));
	for (; p->mappings && text < end; text = next + 1) {
		next = memchr(text, '\n', (size_t)(end - text));
		next = next ? next : end;
		if (!parse(text, next, &m, &path))
			continue;
		if (p->mapping_count == room) {
			component_error_set(err, "has more than %zu mappings of code", LEGACY_MAP_MAX);
			return -EFBIG;
		}
		m.file = arena_strndup(&p->arena, path.at, path.size);
		if (!m.file)
			return no_memory(err);
		p->mappings[p->mapping_count++] = m;
	}
	main_first(p);
	return p->mappings ? 0 : no_memory(err);
}

static bool
before(const void *arg, uint32_t a, uint32_t b)
{
	const struct pprof *p = arg;

	return p->mappings[a].start != p->mappings[b].start ? p->mappings[a].start < p->mappings[b].start : a < b;
}

/* NULL: none has it. */
static const struct pprof_mapping *
find(const struct pprof *p, const uint32_t *order, uint64_t address)
{
	size_t                      low = 0, high = p->mapping_count;
	const struct pprof_mapping *m;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (p->mappings[order[middle]].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low && address < p->mappings[order[low - 1]].limit)
		return &p->mappings[order[low - 1]];
	m = low < p->mapping_count ? &p->mappings[order[low]] : NULL;
	return m && m->offset && m->offset <= m->start && m->start - m->offset <= address ? m : NULL;
}

/* The mappings as the symbol reader has them: with the parts that were left out, and none over another. */
static struct symbol_mapping *
places_of(struct pprof *p, const uint32_t *order, size_t *ret_count)
{
	struct symbol_mapping *places = arena_array(&p->arena, p->mapping_count + 1, sizeof(*places));
	uint64_t               last = 0;

	*ret_count = 0;
	for (size_t i = 0; i < p->mapping_count && places; i++) {
		const struct pprof_mapping *m = &p->mappings[order[i]];
		uint64_t                    start = m->start;

		if (!*m->file || start < last)
			continue;
		if (m->offset <= start && start - m->offset >= last)
			start -= m->offset;
		places[(*ret_count)++] = (struct symbol_mapping){ .start = start, .limit = m->limit,
			.offset = m->offset - (m->start - start), .path = m->file, .build_id = m->build_id };
		last = m->limit;
	}
	return places;
}

static int
set_frames(struct pprof *p, struct pprof_location *l, const struct symbol_frame *frames, struct demangle_room **room)
{
	struct pprof_line *lines = arena_array(&p->arena, (size_t)l->count + 1, sizeof(*lines));

	l->functions = arena_array(&p->arena, (size_t)l->count + 1, sizeof(struct pprof_function *));
	if (!lines || !l->functions)
		return -ENOMEM;
	l->lines = lines;
	for (uint32_t i = 0; i < l->count; i++) {
		const struct symbol_frame *f = &frames[i];
		struct pprof_function     *to = &p->functions[p->function_count++];
		const char *system_name = arena_strndup(&p->arena, f->system_name, strlen(f->system_name));
		const char *name = arena_strndup(&p->arena, f->name, strlen(f->name));
		const char *file = arena_strndup(&p->arena, f->file ? f->file : "", f->file ? strlen(f->file) : 0);

		if (!system_name || !name || !file)
			return -ENOMEM;
		/* Mangled ones become as short as in other profiles. */
		if (strcmp(name, system_name))
			name = read_name(p, room, "", system_name);
		if (!name)
			return -ENOMEM;
		*to = (struct pprof_function){ name, file, system_name, f->start_line };
		l->functions[i] = to;
		lines[i] = (struct pprof_line){ f->line, 0 };
	}
	return 0;
}

static int
name_all(struct pprof *p, struct symbols *s)
{
	struct symbol_frame   frames[SYMBOLS_FRAMES_MAX];
	struct demangle_room *room = NULL;
	uintptr_t            *pcs = arena_array(&p->arena, p->location_count + 1, sizeof(*pcs));
	size_t                count = 0;
	int                   r = 0;

	if (!pcs)
		return -ENOMEM;
	for (size_t i = 0; i < p->location_count; i++)
		pcs[i] = p->locations[i].address;
	symbols_resolve(s, pcs, p->location_count);
	for (size_t i = 0; i < p->location_count; i++) {
		p->locations[i].count = symbols_frames(s, pcs[i], frames, SYMBOLS_FRAMES_MAX);
		count += p->locations[i].count;
	}
	p->functions = arena_array(&p->arena, count + 1, sizeof(*p->functions));
	for (size_t i = 0; i < p->location_count && !r && p->functions; i++)
		if (p->locations[i].count && symbols_frames(s, pcs[i], frames, SYMBOLS_FRAMES_MAX) == p->locations[i].count)
			r = set_frames(p, &p->locations[i], frames, &room);
		else
			p->locations[i].count = 0;
	return p->functions ? r : -ENOMEM;
}

int
legacy_map_name(struct pprof *p, struct component_error *err)
{
	uint32_t              *order = order_of(&p->arena, p->mapping_count, before, p);
	struct symbol_mapping *places;
	struct symbols        *s = NULL;
	size_t                 count;
	int                    r = p->mapping_count && !order ? -ENOMEM : 0;

	for (size_t i = 0; i < p->location_count && !r; i++) {
		struct pprof_location *l = &p->locations[i];

		l->mapping = l->address ? find(p, order, l->address) : NULL;
		l->object = l->mapping ? l->mapping->file : "";
	}
	places = r ? NULL : places_of(p, order, &count);
	if (places)
		r = symbols_open_places(READ_MEMORY_MAX, places, count, &s);
	r = !places ? -ENOMEM : r;
	if (!r)
		r = name_all(p, s);
	symbols_close(s);
	if (r < 0)
		no_memory(err);
	return r;
}
