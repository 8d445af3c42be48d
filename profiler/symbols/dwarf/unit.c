/*
 * unit.c - the units of .debug_info, their entries and strings.
 *
 * At the start all units are listed, by their headers; of each one only the first
 * entry is read, for the code it covers.  An entry is a number, which stands for a
 * list of attributes (abbrev.c), and their values, without any sizes: whoever
 * does not know one form cannot read on.
 *
 * What a stranger would get wrong: values of a unit's first entry (str_offsets_base)
 * are needed for others of the same entry that may stand before them.
 *
 * Tests: tests/symbols/test_dwarf.c, tests/symbols/lines.t
 */
#include <config.h>

#include "unit.h"

#include <errno.h>
#include <stddef.h>

#include "constants.h"

#define UNITS_MAX      ((size_t)1 << 20)  /* of one file; the largest programs have 100,000 */
#define HEADER_MAX     48                 /* bytes of a unit's header, and more than that */

static int
open_sections(struct dwarf *d, const struct image *img)
{
	const struct {
		struct dwarf_section *section;
		const char           *name;
	} all[] = {
		{ &d->abbrev, "abbrev" }, { &d->info, "info" }, { &d->line, "line" },
		{ &d->rnglists, "rnglists" }, { &d->ranges, "ranges" }, { &d->addr, "addr" },
		{ &d->line_str, "line_str" }, { &d->str_offsets, "str_offsets" }, { &d->str, "str" },
	};
	int r = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all) && !r; i++)
		r = dwarf_section_open(all[i].section, &d->arena, img, all[i].name);
	return r;
}

/* The header at offset: the unit's extent, and whether it is one we read. */
static int
read_header(struct dwarf *d, uint64_t offset, struct dwarf_unit *u, bool *ret_useful)
{
	size_t               n = 0;
	const unsigned char *p = dwarf_section_view(&d->info, offset, HEADER_MAX, &n);
	struct dwarf_cursor  c = dwarf_cursor_of(p, n);
	uint64_t             size, left;
	unsigned             type = DW_UT_compile;

	*u = (struct dwarf_unit){ .offset = offset };
	size = dwarf_length(&c, &u->encoding.offset_size);
	left = d->info.size - offset - (uint64_t)(c.p - p);
	if (c.bad || size > left)
		return -ENOEXEC;
	u->end = offset + (uint64_t)(c.p - p) + size;
	u->encoding.version = (uint16_t)dwarf_number(&c, 2);
	if (u->encoding.version >= 5) {
		type = (unsigned)dwarf_number(&c, 1);
		u->encoding.address_size = (uint8_t)dwarf_number(&c, 1);
		u->abbrevs = dwarf_number(&c, u->encoding.offset_size);
	} else {
		u->abbrevs = dwarf_number(&c, u->encoding.offset_size);
		u->encoding.address_size = (uint8_t)dwarf_number(&c, 1);
	}
	u->first = offset + (uint64_t)(c.p - p);
	*ret_useful = !c.bad && u->first < u->end && u->encoding.version >= 2 && u->encoding.version <= 5 &&
		(u->encoding.address_size == 8 || u->encoding.address_size == 4) &&
		(type == DW_UT_compile || type == DW_UT_partial);
	return 0;
}

static int
list_units(struct dwarf *d)
{
	struct dwarf_unit u;
	bool              useful;

	for (int pass = 0; pass < 2; pass++) {
		size_t n = 0;

		for (uint64_t at = 0; at < d->info.size; at = u.end) {
			if (!dwarf_work(d, 1))
				return -EFBIG;
			/* What is behind a broken header cannot be found. */
			if (read_header(d, at, &u, &useful) < 0)
				break;
			if (!useful)
				continue;
			if (pass && n < d->unit_count)
				d->units[n] = u;
			if (++n > UNITS_MAX)
				return -EFBIG;
		}
		if (!pass) {
			d->unit_count = n;
			d->units = arena_array(&d->arena, n, sizeof(u));
			if (!d->units)
				return -ENOMEM;
		}
	}
	return 0;
}

int
dwarf_open(struct dwarf *d, struct arena_budget *budget, struct strings *texts,
	const struct image *img, const struct image *code, uint64_t *work)
{
	int r;

	*d = (struct dwarf){ .texts = texts, .code = code, .work = work };
	arena_init(&d->arena, budget);
	arena_init(&d->tables, budget);
	table_init(&d->abbrevs, budget);
	r = open_sections(d, img);
	return r < 0 ? r : list_units(d);
}

void
dwarf_close(struct dwarf *d)
{
	table_release(&d->abbrevs);
	arena_release(&d->tables);
	arena_release(&d->arena);
}

struct dwarf_unit *
dwarf_unit_at(struct dwarf *d, uint64_t offset)
{
	size_t low = 0, high = d->unit_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (d->units[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low && offset >= d->units[low - 1].first && offset < d->units[low - 1].end ?
		&d->units[low - 1] : NULL;
}

/* An entry has values alone, which are numbered here from 1. */
#define VALUE(member) (1 + offsetof(struct dwarf_entry, member) / sizeof(struct dwarf_value))

static struct dwarf_value *
slot(struct dwarf_entry *e, unsigned name)
{
	static const uint8_t values[] = {
		[DW_AT_sibling] = VALUE(sibling),
		[DW_AT_name] = VALUE(name),
		[DW_AT_stmt_list] = VALUE(stmt_list),
		[DW_AT_low_pc] = VALUE(low),
		[DW_AT_high_pc] = VALUE(high),
		[DW_AT_comp_dir] = VALUE(comp_dir),
		[DW_AT_abstract_origin] = VALUE(origin),
		[DW_AT_decl_line] = VALUE(decl_line),
		[DW_AT_specification] = VALUE(specification),
		[DW_AT_ranges] = VALUE(ranges),
		[DW_AT_call_file] = VALUE(call_file),
		[DW_AT_call_line] = VALUE(call_line),
		[DW_AT_linkage_name] = VALUE(linkage),
		[DW_AT_str_offsets_base] = VALUE(str_offsets),
		[DW_AT_addr_base] = VALUE(addrs),
		[DW_AT_rnglists_base] = VALUE(rnglists),
	};

	if (name == DW_AT_MIPS_linkage_name)
		name = DW_AT_linkage_name;
	return name < sizeof(values) && values[name] ? (struct dwarf_value *)e + values[name] - 1 : NULL;
}

void
dwarf_entry_read(struct dwarf_cursor *c, const struct dwarf_abbrevs *t,
	const struct dwarf_abbrev *ab, struct dwarf_entry *ret)
{
	*ret = (struct dwarf_entry){ .sibling.class = DWARF_NONE };
	for (uint32_t i = 0; i < ab->count && !c->bad; i++) {
		const struct dwarf_attr *a = &t->attrs[ab->first + i];
		struct dwarf_value      *v = slot(ret, a->name);

		if (v)
			dwarf_form(c, &t->encoding, a->form, a->implicit, v);
		else
			dwarf_form_skip(c, &t->encoding, a->form);
	}
}

void
dwarf_entry_skip(struct dwarf_cursor *c, const struct dwarf_abbrevs *t, const struct dwarf_abbrev *ab)
{
	if (ab->size >= 0) {
		dwarf_skip(c, (uint64_t)ab->size);
		return;
	}
	for (uint32_t i = 0; i < ab->count && !c->bad; i++)
		dwarf_form_skip(c, &t->encoding, t->attrs[ab->first + i].form);
}

static uint64_t
number(const struct dwarf_value *v, uint64_t otherwise)
{
	return v->class == DWARF_NUMBER ? v->u : otherwise;
}

int
dwarf_unit_root(struct dwarf *d, struct dwarf_unit *u, struct dwarf_entry *ret)
{
	struct dwarf_attr    attrs[DWARF_ROOT_ATTRS_MAX];
	struct dwarf_abbrevs one = { .encoding = u->encoding, .attrs = attrs };
	struct dwarf_abbrev  ab;
	size_t               n = 0;
	const unsigned char *p = dwarf_section_view(&d->info, u->first, u->end - u->first, &n);
	struct dwarf_cursor  c = dwarf_cursor_of(p, n);
	uint64_t             skip = u->encoding.offset_size == 8 ? 16 : 8;
	uint64_t             code = dwarf_uleb(&c);

	if (!code || c.bad || !dwarf_abbrev_read(d, u, code, attrs, &ab))
		return -ENOEXEC;
	dwarf_entry_read(&c, &one, &ab, ret);
	if (c.bad || u->rooted)
		return c.bad ? -ENOEXEC : 0;
	/* Without a base: behind the header of the section's first table. */
	u->str_offsets = number(&ret->str_offsets, skip);
	u->addrs = number(&ret->addrs, skip);
	u->rnglists = number(&ret->rnglists, skip + 4);
	u->rooted = true;
	if (!dwarf_address(d, u, &ret->low, &u->low))
		u->low = 0;
	return 0;
}

bool
dwarf_element(struct dwarf_section *s, uint64_t base, uint64_t index, unsigned size, uint64_t *ret)
{
	size_t              n = 0;
	struct dwarf_cursor c;
	uint64_t            at;

	if (__builtin_mul_overflow(index, size, &at) || __builtin_add_overflow(at, base, &at))
		return false;
	c.p = dwarf_section_view(s, at, size, &n);
	if (!c.p || n < size)
		return false;
	c.end = c.p + n;
	c.bad = false;
	*ret = dwarf_number(&c, size);
	return true;
}

const char *
dwarf_text(struct dwarf *d, const struct dwarf_unit *u, const struct dwarf_value *v, size_t *ret_size)
{
	uint64_t at;

	switch (v->class) {
	case DWARF_STRING:
		*ret_size = (size_t)v->u;
		return v->text;
	case DWARF_STRING_STR:
		return dwarf_section_string(&d->str, v->u, ret_size);
	case DWARF_STRING_LINE:
		return dwarf_section_string(&d->line_str, v->u, ret_size);
	case DWARF_STRING_ALT:
		return d->alt ? dwarf_section_string(&d->alt->str, v->u, ret_size) : NULL;
	case DWARF_STRING_INDEX:
		if (!dwarf_element(&d->str_offsets, u->str_offsets, v->u, u->encoding.offset_size, &at))
			return NULL;
		return dwarf_section_string(&d->str, at, ret_size);
	default:
		return NULL;
	}
}

bool
dwarf_address(struct dwarf *d, const struct dwarf_unit *u, const struct dwarf_value *v, uint64_t *ret)
{
	if (v->class == DWARF_ADDRESS)
		*ret = v->u;
	else if (v->class != DWARF_ADDRESS_INDEX)
		return false;
	else
		return dwarf_element(&d->addr, u->addrs, v->u, u->encoding.address_size, ret);
	return true;
}
