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

uint64_t
dwarf_length(struct dwarf_cursor *c, uint8_t *ret_offset_size)
{
	uint64_t length = dwarf_number(c, 4);

	*ret_offset_size = length == 0xffffffff ? 8 : 4;
	return *ret_offset_size == 8 ? dwarf_number(c, 8) : length;
}

/* Bytes of a value, or what tells them. */
enum { SIZES_MAX = 16, OF_ADDRESS, OF_OFFSET, OF_REFERENCE, ULEB, SLEB, TEXT, BLOCK };

struct form {
	uint8_t class; /* DWARF_NONE: nobody knows it */
	uint8_t size;  /* BLOCK and 1, 2 or 4: its length has so many bytes */
};

static const struct form *
form_of(unsigned form)
{
	static const struct form forms[] = {
		[DW_FORM_addr] = { DWARF_ADDRESS, OF_ADDRESS },
		[DW_FORM_block2] = { DWARF_OTHER, BLOCK + 2 },
		[DW_FORM_block4] = { DWARF_OTHER, BLOCK + 4 },
		[DW_FORM_data2] = { DWARF_NUMBER, 2 },
		[DW_FORM_data4] = { DWARF_NUMBER, 4 },
		[DW_FORM_data8] = { DWARF_NUMBER, 8 },
		[DW_FORM_string] = { DWARF_STRING, TEXT },
		[DW_FORM_block] = { DWARF_OTHER, BLOCK },
		[DW_FORM_block1] = { DWARF_OTHER, BLOCK + 1 },
		[DW_FORM_data1] = { DWARF_NUMBER, 1 },
		[DW_FORM_flag] = { DWARF_NUMBER, 1 },
		[DW_FORM_sdata] = { DWARF_NUMBER, SLEB },
		[DW_FORM_strp] = { DWARF_STRING_STR, OF_OFFSET },
		[DW_FORM_udata] = { DWARF_NUMBER, ULEB },
		[DW_FORM_ref_addr] = { DWARF_REF_INFO, OF_REFERENCE },
		[DW_FORM_ref1] = { DWARF_REF_UNIT, 1 },
		[DW_FORM_ref2] = { DWARF_REF_UNIT, 2 },
		[DW_FORM_ref4] = { DWARF_REF_UNIT, 4 },
		[DW_FORM_ref8] = { DWARF_REF_UNIT, 8 },
		[DW_FORM_ref_udata] = { DWARF_REF_UNIT, ULEB },
		[DW_FORM_sec_offset] = { DWARF_NUMBER, OF_OFFSET },
		[DW_FORM_exprloc] = { DWARF_OTHER, BLOCK },
		[DW_FORM_flag_present] = { DWARF_NUMBER, 0 },
		[DW_FORM_strx] = { DWARF_STRING_INDEX, ULEB },
		[DW_FORM_addrx] = { DWARF_ADDRESS_INDEX, ULEB },
		[DW_FORM_ref_sup4] = { DWARF_REF_ALT, 4 },
		[DW_FORM_strp_sup] = { DWARF_STRING_ALT, OF_OFFSET },
		[DW_FORM_data16] = { DWARF_OTHER, 16 },
		[DW_FORM_line_strp] = { DWARF_STRING_LINE, OF_OFFSET },
		[DW_FORM_ref_sig8] = { DWARF_OTHER, 8 },
		[DW_FORM_implicit_const] = { DWARF_NUMBER, 0 },
		[DW_FORM_loclistx] = { DWARF_OTHER, ULEB },
		[DW_FORM_rnglistx] = { DWARF_LIST_INDEX, ULEB },
		[DW_FORM_ref_sup8] = { DWARF_REF_ALT, 8 },
		[DW_FORM_strx1] = { DWARF_STRING_INDEX, 1 },
		[DW_FORM_strx2] = { DWARF_STRING_INDEX, 2 },
		[DW_FORM_strx3] = { DWARF_STRING_INDEX, 3 },
		[DW_FORM_strx4] = { DWARF_STRING_INDEX, 4 },
		[DW_FORM_addrx1] = { DWARF_ADDRESS_INDEX, 1 },
		[DW_FORM_addrx2] = { DWARF_ADDRESS_INDEX, 2 },
		[DW_FORM_addrx3] = { DWARF_ADDRESS_INDEX, 3 },
		[DW_FORM_addrx4] = { DWARF_ADDRESS_INDEX, 4 },
	};
	static const struct form alternate = { DWARF_REF_ALT, OF_OFFSET };

	if (form == DW_FORM_GNU_ref_alt)
		return &alternate;
	if (form == DW_FORM_GNU_strp_alt)
		form = DW_FORM_strp_sup;
	return &forms[form < sizeof(forms) / sizeof(*forms) ? form : 0];
}

int
dwarf_form_size(const struct dwarf_encoding *e, unsigned form)
{
	const struct form *f = form_of(form);

	switch (f->size) {
	case OF_ADDRESS:
		return e->address_size;
	case OF_OFFSET:
		return e->offset_size;
	case OF_REFERENCE:
		return e->version < 3 ? e->address_size : e->offset_size;
	default:
		return f->class != DWARF_NONE && f->size <= SIZES_MAX ? f->size : -1;
	}
}

/* Forms whose size is told by what they are made of. */
static void
variable(struct dwarf_cursor *c, const struct form *f, struct dwarf_value *ret)
{
	const unsigned char *start = c->p;

	switch (f->size) {
	case ULEB:
		ret->u = dwarf_uleb(c);
		break;
	case SLEB:
		ret->u = (uint64_t)dwarf_sleb(c);
		break;
	case TEXT:
		c->p = dwarf_at_end(c) ? NULL : memchr(start, '\0', (size_t)(c->end - start));
		if (!c->p) {
			c->p = c->end;
			c->bad = true;
			return;
		}
		ret->text = (const char *)start;
		ret->u = (uint64_t)(c->p++ - start);
		break;
	case BLOCK:
		dwarf_skip(c, dwarf_uleb(c));
		break;
	case BLOCK + 1:
	case BLOCK + 2:
	case BLOCK + 4:
		dwarf_skip(c, dwarf_number(c, f->size - BLOCK));
		break;
	default:
		c->bad = true;
		return;
	}
	ret->class = f->class;
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
		variable(c, form_of(form), ret);
	} else if (size == 0) {
		*ret = (struct dwarf_value){ DWARF_NUMBER, form == DW_FORM_flag_present ? 1 : (uint64_t)implicit, NULL };
	} else {
		ret->class = form_of(form)->class;
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
