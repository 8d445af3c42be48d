/*
 * abbrev.c - which attributes the entries of a unit have.
 *
 * .debug_abbrev has lists, one for a unit or shared by many: a number, a tag, and names
 * and forms of attributes.  For units whose entries are walked they are unpacked into
 * tables, with the size of an entry where all of its forms have one; for a unit that is
 * only asked what it covers, the one list of its first entry is read.
 *
 * What a stranger would get wrong: a table belongs to an offset and to an encoding,
 * because two units may share a list and differ in how wide an offset is.  And numbers
 * may be anything up to 2^64; those above a limit, which no compiler reaches, make the
 * unit unreadable instead of a table of that size.
 *
 * Tests: tests/symbols/test_dwarf.c, tests/symbols/lines.t
 */
#include <config.h>

#include "unit.h"

#include "constants.h"

#define CODE_MAX   ((uint64_t)65536) /* number of an abbreviation; some 2,000 in practice */
#define TABLES_MAX ((size_t)4 << 20) /* bytes of unpacked abbreviations kept */

/* False at the end of them, or where c is bad. */
static bool
read_attr(struct dwarf_cursor *c, struct dwarf_attr *ret)
{
	uint64_t name = dwarf_uleb(c), form = dwarf_uleb(c);

	*ret = (struct dwarf_attr){ name > UINT16_MAX ? UINT16_MAX : (uint16_t)name, (uint16_t)form,
				    form == DW_FORM_implicit_const ? dwarf_sleb(c) : 0 };
	c->bad |= form > UINT16_MAX;
	return !c->bad && (name || form);
}

/* Goes through a list of abbreviations: counts, and fills in where there is room. */
static bool
scan_abbrevs(struct dwarf *d, struct dwarf_cursor c, struct dwarf_abbrevs *t,
	uint32_t *ret_abbrevs, uint32_t *ret_attrs, uint64_t *ret_codes)
{
	uint32_t abbrevs = 0, attrs = 0;
	uint64_t codes = 0, code;

	while ((code = dwarf_uleb(&c)) && !c.bad) {
		struct dwarf_abbrev ab = { .first = attrs };
		struct dwarf_attr   attr;

		ab.tag = (uint16_t)dwarf_uleb(&c);
		ab.has_children = dwarf_number(&c, 1);
		while (read_attr(&c, &attr)) {
			int size = dwarf_form_size(&t->encoding, attr.form);

			if (!dwarf_work(d, 1))
				return false;
			ab.size = size < 0 || ab.size < 0 || ab.size > 1 << 20 ? -1 : ab.size + size;
			if (t->attrs)
				t->attrs[attrs] = attr;
			attrs++;
		}
		if (c.bad || !dwarf_work(d, 1))
			return false;
		ab.count = attrs - ab.first;
		if (code >= CODE_MAX)
			return false;
		if (code >= codes)
			codes = code + 1;
		if (t->abbrevs) {
			t->abbrevs[abbrevs] = ab;
			if (!t->by_code[code])
				t->by_code[code] = abbrevs + 1;
		}
		abbrevs++;
	}
	*ret_abbrevs = abbrevs;
	*ret_attrs = attrs;
	*ret_codes = codes;
	return !c.bad;
}

static struct dwarf_abbrevs *
build_abbrevs(struct dwarf *d, const struct dwarf_unit *u)
{
	struct arena          scratch;
	struct dwarf_abbrevs *t = arena_alloc(&d->tables, sizeof(*t)), *ret = NULL;
	uint32_t              abbrevs, attrs;
	uint64_t              codes, size;
	const unsigned char  *p;
	struct dwarf_cursor   c;

	arena_init(&scratch, d->arena.budget);
	if (!t || u->abbrevs >= d->abbrev.size)
		goto out;
	size = d->abbrev.size - u->abbrevs;
	if (!d->abbrev.data && !dwarf_work(d, size / 256))
		goto out;
	p = dwarf_section_piece(&d->abbrev, &scratch, u->abbrevs, size);
	if (!p)
		goto out;
	c = (struct dwarf_cursor){ p, p + size, false };
	t->encoding = u->encoding;
	if (!scan_abbrevs(d, c, t, &abbrevs, &attrs, &codes))
		goto out;
	t->attrs = arena_array(&d->tables, attrs + 1, sizeof(*t->attrs));
	t->abbrevs = arena_array(&d->tables, abbrevs + 1, sizeof(*t->abbrevs));
	t->by_code = arena_array(&d->tables, (size_t)codes + 1, sizeof(*t->by_code));
	if (!t->attrs || !t->abbrevs || !t->by_code || !scan_abbrevs(d, c, t, &abbrevs, &attrs, &codes))
		goto out;
	t->codes = (uint32_t)codes;
	d->tables_bytes += attrs * sizeof(*t->attrs) + abbrevs * sizeof(*t->abbrevs) + codes * sizeof(*t->by_code);
	ret = t;
out:
	arena_release(&scratch);
	return ret;
}

static bool
is_of_encoding(const void *encoding, uint64_t abbrevs)
{
	const struct dwarf_abbrevs *t = (const struct dwarf_abbrevs *)(uintptr_t)abbrevs;

	return !memcmp(&t->encoding, encoding, sizeof(t->encoding));
}

const struct dwarf_abbrevs *
dwarf_abbrevs_of(struct dwarf *d, const struct dwarf_unit *u, bool forget)
{
	struct dwarf_abbrevs *t;

	if (forget && d->tables_bytes > TABLES_MAX) {
		table_release(&d->abbrevs);
		table_init(&d->abbrevs, d->arena.budget);
		arena_release(&d->tables);
		d->tables_bytes = 0;
	}
	t = (struct dwarf_abbrevs *)(uintptr_t)table_find(&d->abbrevs, u->abbrevs + 1, is_of_encoding, &u->encoding);
	if (t)
		return t;
	t = build_abbrevs(d, u);
	return t && table_put(&d->abbrevs, u->abbrevs + 1, (uintptr_t)t) == 0 ? t : NULL;
}

bool
dwarf_abbrev_read(struct dwarf *d, const struct dwarf_unit *u, uint64_t wanted,
	struct dwarf_attr *attrs, struct dwarf_abbrev *ret)
{
	size_t               n = 0;
	const unsigned char *p = dwarf_section_view(&d->abbrev, u->abbrevs, UINT32_MAX, &n);
	struct dwarf_cursor  c = dwarf_cursor_of(p, n);
	uint64_t             code, steps = 0;
	struct dwarf_attr    attr;

	*ret = (struct dwarf_abbrev){ .size = -1 };
	while ((code = dwarf_uleb(&c)) && !c.bad) {
		ret->tag = (uint16_t)dwarf_uleb(&c);
		ret->has_children = dwarf_number(&c, 1);
		for (ret->count = 0; read_attr(&c, &attr); ret->count++) {
			steps++;
			if (code != wanted)
				continue;
			if (ret->count == DWARF_ROOT_ATTRS_MAX)
				return false;
			attrs[ret->count] = attr;
		}
		steps++;
		if (code == wanted || c.bad)
			break;
	}
	return dwarf_work(d, 1 + steps / 8) && !c.bad && code == wanted;
}
