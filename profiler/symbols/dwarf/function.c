/*
 * function.c - the functions around addresses, and those inlined there.
 *
 * The entries of a unit are a tree, written in one row, where an empty entry ends a
 * list of children.  It is walked once, from front to end, with the function around
 * each level in a stack of fixed size.  Functions without one of the addresses are
 * jumped over; an address goes to the innermost function that has it, which is the one
 * with the smallest range.
 *
 * An inlined function is but a reference, often through several entries, sometimes
 * into another unit or file, to where its name stands.  It is followed when the walk
 * is over, once for each different one.
 *
 * What a stranger would get wrong: functions are found in functions (GNU C, Fortran)
 * whose own ranges do not have the address.  So, for addresses without one after a
 * walk that jumps, there is a second that does not.
 *
 * Tests: tests/symbols/lines.t, tests/symbols/test_dwarf.c
 */
#include <config.h>

#include "function.h"

#include <errno.h>

#include "constants.h"

#define DEPTH_MAX 256 /* levels of the tree looked at; some 30 in practice */
#define HOPS_MAX  16  /* references from an entry to its name; three are usual */
#define ALT_KEY   ((uint64_t)1 << 63)
#define ATTRS_OF_WORK 8 /* attributes of an entry that are a step of work */

struct walk {
	struct dwarf                *d;
	struct arena                *scratch;
	struct dwarf_unit           *unit;
	const struct dwarf_abbrevs  *table;
	const unsigned char         *data; /* of the unit, from its first entry on */
	struct dwarf_want           *wants;
	size_t                       count;
	const struct dwarf_function *around[DEPTH_MAX];
	/* The entry being looked at. */
	uint64_t                     offset;
	const struct dwarf_entry    *entry;
	struct dwarf_function       *function; /* once it has one of the addresses */
	const struct dwarf_function *caller;
	bool                         no_memory;
};

/* Where a reference leads to; false if it is none. */
static bool
refer(const struct dwarf_unit *u, const struct dwarf_value *v, uint64_t *ret, bool *ret_alt)
{
	if (v->class != DWARF_REF_UNIT && v->class != DWARF_REF_INFO && v->class != DWARF_REF_ALT)
		return false;
	*ret = v->class == DWARF_REF_UNIT ? u->offset + v->u : v->u;
	*ret_alt = v->class == DWARF_REF_ALT;
	return true;
}

static struct dwarf_function *
function_add(struct walk *w)
{
	const struct dwarf_entry *e = w->entry;
	struct dwarf_function    *f = arena_alloc(w->scratch, sizeof(*f));
	const struct dwarf_value *to = e->origin.class ? &e->origin : &e->specification;

	if (!f)
		return NULL;
	f->entry = w->offset;
	/* Without a name of its own it shares the one of many others. */
	if (!e->name.class && !e->linkage.class)
		refer(w->unit, to, &f->entry, &f->alt);
	f->caller = w->caller;
	if (e->call_file.class == DWARF_NUMBER && e->call_file.u < UINT32_MAX)
		f->call_file = (uint32_t)e->call_file.u;
	if (e->call_line.class == DWARF_NUMBER && e->call_line.u <= INT32_MAX)
		f->call_line = (uint32_t)e->call_line.u;
	return f;
}

static void
on_range(void *arg, uint64_t low, uint64_t high)
{
	struct walk *w = arg;
	size_t       from = dwarf_want_first(w->wants, w->count, low);

	for (; from < w->count && w->wants[from].vaddr < high && dwarf_work(w->d, 1); from++) {
		struct dwarf_want *want = &w->wants[from];

		if (!w->function)
			w->function = function_add(w);
		if (!w->function) {
			w->no_memory = true;
			return;
		}
		if (want->function && high - low > want->span)
			continue;
		want->function = w->function;
		want->span = high - low;
	}
}

/* Behind the code of a function's entry.  Whether to look at its children, or to go
 * where *ret_skip_to says. */
static bool
visit(struct walk *w, struct dwarf_cursor *c, const struct dwarf_abbrev *ab, bool all, const unsigned char **ret_skip_to)
{
	struct dwarf_entry e;
	uint64_t           sibling, size = (uint64_t)(c->end - w->data);

	dwarf_entry_read(c, w->table, ab, &e);
	w->entry = &e;
	w->function = NULL;
	if (!c->bad)
		dwarf_ranges_each(w->d, w->unit, &e, on_range, w);
	if (w->function || all)
		return true;
	sibling = e.sibling.u - (w->unit->first - w->unit->offset);
	if (e.sibling.class == DWARF_REF_UNIT && sibling < size && w->data + sibling > c->p)
		*ret_skip_to = w->data + sibling;
	return false;
}

static bool
is_leaf(unsigned tag)
{
	return tag == DW_TAG_array_type || tag == DW_TAG_enumeration_type || tag == DW_TAG_subroutine_type ||
		tag == DW_TAG_call_site || tag == DW_TAG_GNU_call_site;
}

/* all: look into functions without one of the addresses, too. */
static int
walk(struct walk *w, uint64_t size, bool all)
{
	struct dwarf_cursor c = { w->data, w->data + size, false };
	unsigned            depth = 0, quiet = UINT32_MAX; /* deeper than that nothing counts */

	while (!dwarf_at_end(&c) && !c.bad && !w->no_memory) {
		const struct dwarf_abbrev *ab;
		const unsigned char       *skip_to = NULL;
		bool                       deeper = true;
		uint64_t                   code;

		w->offset = w->unit->first + (uint64_t)(c.p - w->data);
		code = dwarf_uleb(&c);
		if (!code) {
			if (depth && --depth <= quiet)
				quiet = UINT32_MAX;
			continue;
		}
		ab = dwarf_abbrev_find(w->table, code);
		if (!ab)
			return -ENOEXEC;
		if (!dwarf_work(w->d, 1 + ab->count / ATTRS_OF_WORK))
			return -EFBIG;
		w->function = NULL;
		w->caller = depth < DEPTH_MAX && ab->tag == DW_TAG_inlined_subroutine ? w->around[depth] : NULL;
		if (depth <= quiet && (ab->tag == DW_TAG_subprogram || ab->tag == DW_TAG_inlined_subroutine)) {
			deeper = visit(w, &c, ab, all, &skip_to);
		} else {
			dwarf_entry_skip(&c, w->table, ab);
			deeper = !is_leaf(ab->tag);
		}
		if (!ab->has_children)
			continue;
		if (skip_to) {
			c.p = skip_to;
			continue;
		}
		if (quiet == UINT32_MAX && (!deeper || depth + 1 >= DEPTH_MAX))
			quiet = depth;
		depth++;
		if (depth < DEPTH_MAX)
			w->around[depth] = w->function ? w->function : w->around[depth - 1];
	}
	return c.bad ? -ENOEXEC : w->no_memory ? -ENOMEM : 0;
}

static bool
is_incomplete(const struct walk *w)
{
	for (size_t i = 0; i < w->count; i++)
		if (!w->wants[i].function && w->wants[i].has_line)
			return true;
	return false;
}

int
dwarf_functions_find(struct dwarf *d, struct arena *scratch, struct dwarf_unit *u,
	struct dwarf_want *wants, size_t count)
{
	uint64_t     size = u->end - u->first;
	struct walk *w = arena_alloc(scratch, sizeof(*w));
	int          r;

	if (!w)
		return -ENOMEM;
	w->d = d;
	w->scratch = scratch;
	w->unit = u;
	w->wants = wants;
	w->count = count;
	w->data = dwarf_section_piece(&d->info, scratch, u->first, size);
	if (!w->data)
		return -ENOMEM;
	w->table = dwarf_abbrevs_of(d, u, true);
	if (!w->table)
		return -ENOEXEC;
	r = walk(w, size, false);
	if (!r && is_incomplete(w))
		r = walk(w, size, true);
	return r;
}

/* Reads the entry at offset, and its unit. */
static bool
read_at(struct dwarf *d, uint64_t offset, struct dwarf_unit **ret_unit, struct dwarf_entry *ret)
{
	struct dwarf_unit          *u = dwarf_unit_at(d, offset);
	struct dwarf_entry          root;
	const struct dwarf_abbrevs *t;
	const struct dwarf_abbrev  *ab;
	struct dwarf_cursor         c;
	size_t                      n = 0;
	const unsigned char        *p;

	if (!u || (!u->rooted && dwarf_unit_root(d, u, &root) < 0))
		return false;
	t = dwarf_abbrevs_of(d, u, false);
	p = dwarf_section_view(&d->info, offset, u->end - offset, &n);
	c = dwarf_cursor_of(p, n);
	if (!t || !p)
		return false;
	ab = dwarf_abbrev_find(t, dwarf_uleb(&c));
	if (!ab || !dwarf_work(d, 1 + ab->count / ATTRS_OF_WORK))
		return false;
	dwarf_entry_read(&c, t, ab, ret);
	*ret_unit = u;
	return !c.bad;
}

static const char *
keep(struct dwarf *d, const struct dwarf_unit *u, const struct dwarf_value *v)
{
	size_t      n = 0;
	const char *text = dwarf_text(d, u, v, &n);

	return text && n ? strings_clean(d->texts, text, n) : NULL;
}

static void
read_name(struct dwarf *d, uint64_t offset, struct dwarf_name *ret)
{
	struct dwarf_unit *u;
	struct dwarf_entry e;
	const char        *linkage;

	for (unsigned hop = 0; hop < HOPS_MAX && d && dwarf_work(d, 1); hop++) {
		bool alt = false;

		if (!read_at(d, offset, &u, &e))
			return;
		if (!ret->start_line && e.decl_line.class == DWARF_NUMBER && e.decl_line.u <= INT32_MAX)
			ret->start_line = (uint32_t)e.decl_line.u;
		linkage = keep(d, u, &e.linkage);
		ret->linkage = linkage != NULL;
		if (linkage)
			ret->name = linkage;
		else if (!ret->name)
			ret->name = keep(d, u, &e.name);
		if (linkage || !refer(u, e.origin.class ? &e.origin : &e.specification, &offset, &alt))
			return;
		if (alt)
			d = d->alt;
	}
}

const struct dwarf_name *
dwarf_function_name(struct dwarf *d, struct arena *a, struct table *names, const struct dwarf_function *f)
{
	uint64_t           key = (f->entry | (f->alt ? ALT_KEY : 0)) + 1;
	struct dwarf_name *n = (struct dwarf_name *)(uintptr_t)table_get(names, key);

	if (n)
		return n;
	n = arena_alloc(a, sizeof(*n));
	if (!n || table_put(names, key, (uintptr_t)n) < 0)
		return NULL;
	read_name(f->alt ? d->alt : d, f->entry, n);
	return n;
}
