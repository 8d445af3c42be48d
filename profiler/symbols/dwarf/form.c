/*
 * form.c - reading numbers and attribute values of debug information.
 *
 * A cursor never leaves its piece: past the end it answers 0 and remembers it in bad,
 * which callers look at once after a whole entry instead of after each number.
 *
 * Tests: tests/symbols/test_dwarf.c, tests/symbols/lines.t
 */
#include <config.h>

#include "form.h"

#include "constants.h"
#include "varint.h"

uint64_t
dwarf_uleb(struct dwarf_cursor *c)
{
	return varint_read(&c->p, c->end, false, &c->bad);
}

int64_t
dwarf_sleb(struct dwarf_cursor *c)
{
	return (int64_t)varint_read(&c->p, c->end, true, &c->bad);
}

uint64_t
dwarf_number(struct dwarf_cursor *c, unsigned size)
{
	const unsigned char *p = c->p;
	uint16_t             v2;
	uint32_t             v4 = 0;
	uint64_t             v8;

	if (!dwarf_skip(c, size))
		return 0;
	switch (size) {
	case 1:
		return *p;
	case 2:
		memcpy(&v2, p, 2);
		return v2;
	case 3:
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
#else
		return p[2] | (uint32_t)p[1] << 8 | (uint32_t)p[0] << 16;
#endif
	case 4:
		memcpy(&v4, p, 4);
		return v4;
	case 8:
		memcpy(&v8, p, 8);
		return v8;
	}
	c->bad = true;
	return 0;
}

int
dwarf_form_size(const struct dwarf_encoding *e, unsigned form)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_flag:
	case DW_FORM_ref1:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return e->address_size;
	case DW_FORM_ref_addr:
		return e->version < 3 ? e->address_size : e->offset_size;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_sec_offset:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return e->offset_size;
	default:
		return -1;
	}
}

static enum dwarf_class
class_of(unsigned form)
{
	switch (form) {
	case DW_FORM_addr:
		return DWARF_ADDRESS;
	case DW_FORM_strp:
		return DWARF_STRING_STR;
	case DW_FORM_line_strp:
		return DWARF_STRING_LINE;
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		return DWARF_STRING_ALT;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
		return DWARF_STRING_INDEX;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
		return DWARF_ADDRESS_INDEX;
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		return DWARF_REF_UNIT;
	case DW_FORM_ref_addr:
		return DWARF_REF_INFO;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		return DWARF_REF_ALT;
	case DW_FORM_rnglistx:
		return DWARF_LIST_INDEX;
	case DW_FORM_data16:
	case DW_FORM_ref_sig8:
	case DW_FORM_loclistx:
		return DWARF_OTHER;
	default:
		return DWARF_NUMBER;
	}
}

/* Forms whose size is told by what they are made of. */
static void
variable(struct dwarf_cursor *c, unsigned form, struct dwarf_value *ret)
{
	const unsigned char *start;

	ret->class = class_of(form);
	switch (form) {
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
		ret->u = dwarf_uleb(c);
		return;
	case DW_FORM_sdata:
		ret->u = (uint64_t)dwarf_sleb(c);
		return;
	case DW_FORM_string:
		start = c->p;
		c->p = dwarf_at_end(c) ? NULL : memchr(start, '\0', (size_t)(c->end - start));
		if (!c->p) {
			c->p = c->end;
			c->bad = true;
			return;
		}
		ret->class = DWARF_STRING;
		ret->text = (const char *)start;
		ret->u = (uint64_t)(c->p++ - start);
		return;
	}
	ret->class = DWARF_OTHER;
	switch (form) {
	case DW_FORM_block1:
		dwarf_skip(c, dwarf_number(c, 1));
		return;
	case DW_FORM_block2:
		dwarf_skip(c, dwarf_number(c, 2));
		return;
	case DW_FORM_block4:
		dwarf_skip(c, dwarf_number(c, 4));
		return;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		dwarf_skip(c, dwarf_uleb(c));
		return;
	}
	c->bad = true;
}

void
dwarf_form(struct dwarf_cursor *c, const struct dwarf_encoding *e, unsigned form,
	int64_t implicit, struct dwarf_value *ret)
{
	int size;

	if (form == DW_FORM_indirect) {
		form = (unsigned)dwarf_uleb(c);
		/* One in another, or one whose value would stand elsewhere: nobody writes it. */
		if (form == DW_FORM_indirect || form == DW_FORM_implicit_const)
			c->bad = true;
	}
	*ret = (struct dwarf_value){ .class = DWARF_OTHER };
	size = dwarf_form_size(e, form);
	if (size < 0) {
		variable(c, form, ret);
	} else if (form == DW_FORM_flag_present) {
		*ret = (struct dwarf_value){ .class = DWARF_NUMBER, .u = 1 };
	} else if (form == DW_FORM_implicit_const) {
		*ret = (struct dwarf_value){ .class = DWARF_NUMBER, .u = (uint64_t)implicit };
	} else {
		ret->class = class_of(form);
		if (size == 16)
			dwarf_skip(c, 16);
		else
			ret->u = dwarf_number(c, (unsigned)size);
	}
}

void
dwarf_form_skip(struct dwarf_cursor *c, const struct dwarf_encoding *e, unsigned form)
{
	struct dwarf_value v;
	int                size = dwarf_form_size(e, form);

	if (size >= 0)
		dwarf_skip(c, (uint64_t)size);
	else
		dwarf_form(c, e, form, 0, &v);
}
