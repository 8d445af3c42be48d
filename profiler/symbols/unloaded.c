/*
 * unloaded.c - objects that are unloaded by now, as mappings behind those of now.
 *
 * Stacks that ran through them are still counted.  Each keeps its own addresses where
 * nobody else has ever been; where another object took its place, a reader that maps
 * addresses to objects would be misled, so the gone one is shown at synthetic ones,
 * above all that a process can have:
 *
 *     shown = (tag + 1) << 48 | address
 *
 * What a stranger would get wrong: the file that has the name of a gone object now may
 * be its successor; only the same build id makes it the same (object.c).
 *
 * Tests: tests/model/unloaded_plugins.t
 */
#include <config.h>

#include "unloaded.h"

#include <errno.h>

static bool
overlap(uintptr_t start, uintptr_t limit, const struct generation *g)
{
	return start < g->limit && g->start < limit;
}

/* Was or is anything else at its addresses? */
static bool
is_shared(const struct unloaded *gone, const struct generation *g, unloaded_mapped_fn *mapped, const void *arg)
{
	if (mapped(arg, g->start, g->limit))
		return true;
	for (size_t i = 0; i < gone->count; i++)
		if (&gone->all[i] != g && overlap(g->start, g->limit, &gone->all[i]))
			return true;
	return false;
}

int
unloaded_read(struct unloaded *gone, struct arena *a)
{
	int r = generations_copy(a, &gone->all, &gone->count);

	if (r || !gone->count)
		return r;
	gone->shift = arena_array(a, gone->count, sizeof(*gone->shift));
	gone->mappings = arena_array(a, gone->count, sizeof(*gone->mappings));
	return gone->shift && gone->mappings ? 0 : -ENOMEM;
}

void
unloaded_place(struct unloaded *gone, unloaded_mapped_fn *mapped, const void *arg)
{
	for (size_t i = 0; i < gone->count; i++) {
		const struct generation *g = &gone->all[i];

		if (!g->loaded && is_shared(gone, g, mapped, arg))
			gone->shift[i] = (uintptr_t)(g->tag + 1) << GENERATIONS_PC_BITS;
	}
}

uintptr_t
unloaded_tagged(const struct unloaded *gone, uintptr_t address)
{
	for (size_t i = 0; i < gone->count; i++) {
		const struct generation *g = &gone->all[i];

		if (address - gone->shift[i] >= g->start && address - gone->shift[i] < g->limit)
			return (address & GENERATIONS_PC_MASK) | (uintptr_t)g->tag << GENERATIONS_PC_BITS;
	}
	return address;
}
