/*
 * unit.h - the units of .debug_info, their entries, strings and ranges.
 */
#ifndef SYMBOLS_DWARF_UNIT_H
#define SYMBOLS_DWARF_UNIT_H

#include <stdbool.h>

#include "dwarf.h"
#include "form.h"
#include "section.h"
#include "table.h"

/* Index of the first of the sorted wants at address or behind it; count: there is none. */
size_t dwarf_want_first(const struct dwarf_want *wants, size_t count, uint64_t address);

#define DWARF_ROOT_ATTRS_MAX 64 /* attributes of a unit's first entry; some 12 in practice */

struct dwarf_attr {
	uint16_t name, form;
	int64_t  implicit;
};

struct dwarf_abbrev {
	uint32_t first, count;  /* of its attributes */
	int32_t  size;          /* bytes of an entry behind its code, or -1 */
	uint16_t tag;
	bool     has_children;
};

struct dwarf_abbrevs {
	struct dwarf_encoding encoding;
	struct dwarf_attr    *attrs;
	struct dwarf_abbrev  *abbrevs;
	uint32_t             *by_code; /* 1 + index; 0: none */
	uint32_t              codes;   /* entries of by_code */
};

struct dwarf_unit {
	uint64_t              offset, first, end; /* of the header, of its first entry, of all */
	uint64_t              abbrevs, str_offsets, addrs, rnglists, low;
	struct dwarf_encoding encoding;
	bool                  rooted; /* the bases are filled in */
};

/* The values of one entry; each is DWARF_NONE when it is not there. */
struct dwarf_entry {
	struct dwarf_value sibling, name, linkage, low, high, ranges, origin, specification;
	struct dwarf_value decl_line, call_file, call_line;
	struct dwarf_value stmt_list, comp_dir, str_offsets, addrs, rnglists;
};

/* One file with its sections. */
struct dwarf {
	struct arena         arena;   /* sections and units, for the whole reading */
	struct arena         tables;  /* abbreviations; thrown away when there are many */
	struct table         abbrevs; /* offset + 1 to struct dwarf_abbrevs */
	struct strings      *texts;
	const struct image  *code;
	struct dwarf        *alt;
	struct dwarf_section info, abbrev, str, line, line_str, ranges, rnglists, addr, str_offsets;
	struct dwarf_unit   *units;
	size_t               unit_count;
	uint64_t            *work;   /* steps left for the whole request */
	size_t               tables_bytes;
};

/* Memory of it all is budget's; give it back with dwarf_close(), after an error too. */
int  dwarf_open(struct dwarf *d, struct arena_budget *budget, struct strings *texts,
	 const struct image *img, const struct image *code, uint64_t *work);
void dwarf_close(struct dwarf *d);
/* Takes steps; false when none are left. */
static inline bool
dwarf_work(struct dwarf *d, uint64_t steps)
{
	if (*d->work < steps) {
		*d->work = 0;
		return false;
	}
	*d->work -= steps;
	return true;
}

/* The abbreviations of a unit, or NULL.  forget: throws away old ones when there are
 * too many, so nothing may be in use. */
const struct dwarf_abbrevs *dwarf_abbrevs_of(struct dwarf *d, const struct dwarf_unit *u, bool forget);
static inline const struct dwarf_abbrev *
dwarf_abbrev_find(const struct dwarf_abbrevs *t, uint64_t code)
{
	return code < t->codes && t->by_code[code] ? &t->abbrevs[t->by_code[code] - 1] : NULL;
}
/* One of them alone, without a table; attrs has room for DWARF_ROOT_ATTRS_MAX. */
bool dwarf_abbrev_read(struct dwarf *d, const struct dwarf_unit *u, uint64_t code,
	struct dwarf_attr *attrs, struct dwarf_abbrev *ret);
/* Behind the code of an entry. */
void dwarf_entry_read(struct dwarf_cursor *c, const struct dwarf_abbrevs *t,
	const struct dwarf_abbrev *ab, struct dwarf_entry *ret);
void dwarf_entry_skip(struct dwarf_cursor *c, const struct dwarf_abbrevs *t, const struct dwarf_abbrev *ab);
/* The unit's first entry; fills in the unit's bases when it has not. */
int  dwarf_unit_root(struct dwarf *d, struct dwarf_unit *u, struct dwarf_entry *ret);
/* The unit an offset of .debug_info is in, or NULL. */
struct dwarf_unit *dwarf_unit_at(struct dwarf *d, uint64_t offset);
/* A string attribute; a view, or NULL. */
const char *dwarf_text(struct dwarf *d, const struct dwarf_unit *u, const struct dwarf_value *v, size_t *ret_size);
/* An element of a table of offsets or addresses. */
bool dwarf_element(struct dwarf_section *s, uint64_t base, uint64_t index, unsigned size, uint64_t *ret);
bool dwarf_address(struct dwarf *d, const struct dwarf_unit *u, const struct dwarf_value *v, uint64_t *ret);

/* The code ranges of an entry that the linker has kept. */
typedef void dwarf_range_fn(void *arg, uint64_t low, uint64_t high);
void dwarf_ranges_each(struct dwarf *d, const struct dwarf_unit *u, const struct dwarf_entry *e,
	dwarf_range_fn *each, void *arg);

#endif
