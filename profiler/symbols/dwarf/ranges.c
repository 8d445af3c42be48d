/*
 * ranges.c - which code an entry of debug information stands for.
 *
 * One range in the entry itself, or a list in .debug_ranges (DWARF 4) or
 * .debug_rnglists (5).  What a stranger would get wrong: code that the linker has
 * thrown away keeps its entries, with 0, 1 or the largest number for an address; such
 * ranges would lie over real code and are left out by asking whether they begin in code.
 *
 * A list may be long and many entries may share one, so each element costs a step of
 * the request's work.
 *
 * Tests: tests/symbols/test_dwarf.c, tests/symbols/lines.t
 */
#include <config.h>

#include "constants.h"
#include "unit.h"

#define ELEMENT_MAX 32 /* bytes: a kind and two numbers of at most ten */

struct walk {
	struct dwarf            *d;
	const struct dwarf_unit *u;
	dwarf_range_fn          *each;
	void                    *arg;
};

static void
tell(const struct walk *w, uint64_t low, uint64_t high)
{
	if (low < high && low > 1 && image_is_code(w->d->code, low))
		w->each(w->arg, low, high);
}

static uint64_t
address_max(const struct dwarf_unit *u)
{
	return u->encoding.address_size == 8 ? UINT64_MAX : UINT32_MAX;
}

static bool
look(struct dwarf_section *s, uint64_t at, struct dwarf_cursor *c)
{
	size_t               n = 0;
	const unsigned char *p = dwarf_section_view(s, at, ELEMENT_MAX, &n);

	*c = dwarf_cursor_of(p, n);
	return p;
}

static void
walk_ranges(const struct walk *w, uint64_t at)
{
	unsigned            size = w->u->encoding.address_size;
	uint64_t            base = w->u->low;
	struct dwarf_cursor c;

	while (dwarf_work(w->d, 1) && look(&w->d->ranges, at, &c)) {
		uint64_t low = dwarf_number(&c, size), high = dwarf_number(&c, size);

		if (c.bad || (!low && !high))
			return;
		if (low == address_max(w->u))
			base = high;
		else
			tell(w, base + low, base + high);
		at += 2 * size;
	}
}

static bool
address_of(const struct walk *w, uint64_t index, uint64_t *ret)
{
	struct dwarf_value v = { .class = DWARF_ADDRESS_INDEX, .u = index };

	return dwarf_address(w->d, w->u, &v, ret);
}

static void
walk_rnglists(const struct walk *w, uint64_t at)
{
	unsigned            size = w->u->encoding.address_size;
	uint64_t            base = w->u->low, low, high;
	struct dwarf_cursor c;

	while (dwarf_work(w->d, 1) && look(&w->d->rnglists, at, &c)) {
		const unsigned char *start = c.p;
		bool                 known = true;

		low = high = 0;
		switch (dwarf_number(&c, 1)) {
		case DW_RLE_base_addressx:
			known = address_of(w, dwarf_uleb(&c), &base);
			break;
		case DW_RLE_base_address:
			base = dwarf_number(&c, size);
			break;
		case DW_RLE_offset_pair:
			low = base + dwarf_uleb(&c);
			high = base + dwarf_uleb(&c);
			break;
		case DW_RLE_startx_endx:
			known = address_of(w, dwarf_uleb(&c), &low) && address_of(w, dwarf_uleb(&c), &high);
			break;
		case DW_RLE_startx_length:
			known = address_of(w, dwarf_uleb(&c), &low);
			high = low + dwarf_uleb(&c);
			break;
		case DW_RLE_start_end:
			low = dwarf_number(&c, size);
			high = dwarf_number(&c, size);
			break;
		case DW_RLE_start_length:
			low = dwarf_number(&c, size);
			high = low + dwarf_uleb(&c);
			break;
		default: /* the end, or nothing we know */
			return;
		}
		if (c.bad || !known)
			return;
		tell(w, low, high);
		at += (uint64_t)(c.p - start);
	}
}

void
dwarf_ranges_each(struct dwarf *d, const struct dwarf_unit *u, const struct dwarf_entry *e,
	dwarf_range_fn *each, void *arg)
{
	struct walk w = { d, u, each, arg };
	uint64_t    low, high, at = e->ranges.u;

	if (e->ranges.class == DWARF_NUMBER || e->ranges.class == DWARF_LIST_INDEX) {
		/* By its number in the unit's table. */
		if (e->ranges.class == DWARF_LIST_INDEX) {
			if (!dwarf_element(&d->rnglists, u->rnglists, at, u->encoding.offset_size, &at))
				return;
			at += u->rnglists;
		}
		if (u->encoding.version >= 5)
			walk_rnglists(&w, at);
		else
			walk_ranges(&w, at);
		return;
	}
	if (!dwarf_address(d, u, &e->low, &low))
		return;
	if (e->high.class == DWARF_NUMBER)
		high = low + e->high.u;
	else if (!dwarf_address(d, u, &e->high, &high))
		return;
	tell(&w, low, high);
}
