/*
 * dwarf.c - lines and inlined functions of many addresses of one object at once.
 *
 *     sorted addresses --> their units --> for each unit, once:
 *         unit.c            line table           line.c
 *         ranges.c          functions            function.c
 *                           frames to the caller
 *
 * What a stranger would get wrong: asked one by one, addresses make a reader search
 * (libdw needs 199 us each); asked together, each unit is read once and nothing of it
 * is kept.  Units come from the ranges in their first entries, not from .debug_aranges,
 * which clang does not write and which nobody can trust to be whole.
 *
 * All bytes are a stranger's.  Each reader checks its own places; what bounds the time
 * is one count of steps for the whole request.
 *
 * Why not libdw: see symbols.c.
 *
 * Tests: tests/symbols/lines.t, tests/symbols/test_dwarf.c, tests/symbols/fuzz.c
 */
#include <config.h>

#include "dwarf.h"

#include <errno.h>

#include "function.h"
#include "line.h"
#include "sort.h"
#include "unit.h"

#define FRAMES_MAX 32 /* of one address: what symbols.h allows */
#define WORK_MAX   ((uint64_t)1 << 26) /* steps of one object: a second or two, 10 times what 100 MB need */

struct lookup {
	struct dwarf      *d;
	struct dwarf_want *wants;
	size_t             count;
	uint32_t           unit; /* the one whose ranges are being told */
	struct arena       arena;
	struct table       names;
	dwarf_found_fn    *found;
	void              *arg;
};

static bool
is_before(const struct dwarf_want *a, const struct dwarf_want *b)
{
	return a->vaddr < b->vaddr;
}

HEAP_SORT(sort, struct dwarf_want, is_before)

size_t
dwarf_want_first(const struct dwarf_want *wants, size_t count, uint64_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (wants[middle].vaddr < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void
on_unit_range(void *arg, uint64_t low, uint64_t high)
{
	struct lookup *k = arg;
	size_t         from = dwarf_want_first(k->wants, k->count, low);

	for (; from < k->count && k->wants[from].vaddr < high && dwarf_work(k->d, 1); from++)
		if (!k->wants[from].unit)
			k->wants[from].unit = k->unit;
}

static void
find_units(struct lookup *k)
{
	struct dwarf_entry root;

	for (size_t i = 0; i < k->d->unit_count && *k->d->work; i++) {
		struct dwarf_unit *u = &k->d->units[i];

		if (dwarf_unit_root(k->d, u, &root) < 0)
			continue;
		k->unit = (uint32_t)i + 1;
		dwarf_ranges_each(k->d, u, &root, on_unit_range, k);
	}
}

/* The addresses by unit, in their order; those without one are left out. */
static struct dwarf_want *
group(struct lookup *k, uint32_t **ret_ends)
{
	struct dwarf_want *grouped = arena_array(&k->arena, k->count + 1, sizeof(*grouped));
	uint32_t          *ends = arena_array(&k->arena, k->d->unit_count + 1, sizeof(*ends)), sum = 0;

	if (!grouped || !ends)
		return NULL;
	for (size_t i = 0; i < k->count; i++)
		if (k->wants[i].unit)
			ends[k->wants[i].unit - 1]++;
	for (size_t i = 0; i < k->d->unit_count; i++) {
		uint32_t n = ends[i];

		ends[i] = sum;
		sum += n;
	}
	for (size_t i = 0; i < k->count; i++)
		if (k->wants[i].unit)
			grouped[ends[k->wants[i].unit - 1]++] = k->wants[i];
	*ret_ends = ends;
	return grouped;
}

/* Innermost first; of too many, the last one is still the real function. */
static unsigned
make_frames(struct lookup *k, struct dwarf_lines *lines, const struct dwarf_want *w, struct dwarf_frame *frames)
{
	const struct dwarf_function *f = w->function;
	const struct dwarf_name     *name;
	unsigned                     n = 0;

	frames[0] = (struct dwarf_frame){ .name = NULL };
	if (w->has_line) {
		frames[0].file = dwarf_lines_file(lines, w->file);
		frames[0].line = frames[0].file ? w->line : 0;
	}
	while (f) {
		name = dwarf_function_name(k->d, &k->arena, &k->names, f);
		if (name) {
			frames[n].name = name->name;
			frames[n].linkage = name->linkage;
			frames[n].start_line = name->start_line;
		}
		if (!f->caller)
			break;
		if (n + 1 < FRAMES_MAX)
			n++;
		frames[n] = (struct dwarf_frame){ .file = dwarf_lines_file(lines, f->call_file) };
		frames[n].line = frames[n].file ? f->call_line : 0;
		f = f->caller;
	}
	return n + 1;
}

static int
read_unit(struct lookup *k, struct dwarf_unit *u, struct dwarf_want *wants, size_t count)
{
	struct dwarf_entry  root;
	struct dwarf_lines *lines;
	struct arena        scratch;
	struct dwarf_frame  frames[FRAMES_MAX];
	int                 r, missing, stop = 0;

	arena_init(&scratch, k->arena.budget);
	lines = arena_alloc(&scratch, sizeof(*lines));
	r = lines ? dwarf_unit_root(k->d, u, &root) : -ENOMEM;
	if (r < 0)
		goto out;
	r = dwarf_lines_open(lines, k->d, &scratch, u, &root);
	if (!r)
		dwarf_lines_run(lines, wants, count);
	else
		lines->file_count = 0;
	missing = dwarf_functions_find(k->d, &scratch, u, wants, count);
	if (!r || r == -ENOENT)
		r = missing;
	for (size_t i = 0; i < count && !stop; i++)
		if (wants[i].has_line || wants[i].function)
			stop = k->found(k->arg, wants[i].id, frames, make_frames(k, lines, &wants[i], frames));
	if (stop)
		r = stop;
out:
	arena_release(&scratch);
	return r;
}

static int
read_units(struct lookup *k)
{
	uint32_t          *ends, start = 0;
	struct dwarf_want *wants = group(k, &ends);
	int                r = wants ? 0 : -ENOMEM, one;

	for (size_t i = 0; wants && i < k->d->unit_count; i++) {
		if (ends[i] > start) {
			one = read_unit(k, &k->d->units[i], wants + start, ends[i] - start);
			r = one ? one : r;
		}
		start = ends[i];
	}
	return r;
}

int
dwarf_lookup(const struct dwarf_files *files, struct arena_budget *budget, struct strings *texts,
	struct dwarf_want *wants, size_t count, dwarf_found_fn *found, void *arg)
{
	uint64_t      work = WORK_MAX;
	struct lookup k = { .wants = wants, .count = count, .found = found, .arg = arg };
	struct arena  own;
	struct dwarf *d;
	int           r = -ENOMEM;

	arena_init(&own, budget);
	arena_init(&k.arena, budget);
	table_init(&k.names, budget);
	d = arena_array(&own, 2, sizeof(*d));
	if (!d)
		return -ENOMEM;
	k.d = d;
	r = dwarf_open(d, budget, texts, files->debug, files->code, &work);
	/* Without the supplementary file there are still most of the names. */
	if (!r && files->alt && !dwarf_open(d + 1, budget, texts, files->alt, files->code, &work))
		d->alt = d + 1;
	if (!r) {
		sort(wants, count);
		find_units(&k);
		r = read_units(&k);
	}
	if (!r && !work)
		r = -EFBIG;
	table_release(&k.names);
	arena_release(&k.arena);
	if (d[1].texts)
		dwarf_close(d + 1);
	dwarf_close(d);
	arena_release(&own);
	return r;
}
