/*
 * cfi_cursor.h - the numbers and pointers of .eh_frame, for cfi.c alone.
 *
 * A cursor never leaves its section: a read past the end sets `bad` and gives 0.  Not a file
 * of its own: a table is made of hundreds of thousands of such numbers, each of a few instructions.
 */
#ifndef UNWIND_CFI_CURSOR_H
#define UNWIND_CFI_CURSOR_H

#include <string.h>

#include "cfi.h"
#include "varint.h"

/* What all linkers write, as DW_EH_PE encodings. */
#define POINTER_PCREL_SDATA4   0x1b /* in descriptions */
#define POINTER_DATAREL_SDATA4 0x3b /* in the search table */

struct cursor {
	const struct cfi_section *section;
	size_t                    at, end;
	bool                      bad;
};

static inline uint64_t
read_fixed(struct cursor *c, unsigned size)
{
	uint64_t value = 0;

	if (c->bad || c->end - c->at < size) {
		c->bad = true;
		return 0;
	}
	memcpy(&value, c->section->data + c->at, size); /* both architectures are little-endian */
	c->at += size;
	return value;
}

static uint64_t
read_leb(struct cursor *c, bool is_signed)
{
	const uint8_t *at = c->section->data + c->at;
	uint64_t       value = c->bad ? 0 : varint_read(&at, c->section->data + c->end, is_signed, &c->bad);

	c->at = (size_t)(at - c->section->data);
	return value;
}

/* Nearly all have one byte. */
static inline uint64_t
read_uleb(struct cursor *c)
{
	if (c->at < c->end && c->section->data[c->at] < 0x80 && !c->bad)
		return c->section->data[c->at++];
	return read_leb(c, false);
}

static int64_t
read_sleb(struct cursor *c)
{
	return (int64_t)read_leb(c, true);
}

/* Four bytes that are known to be there. */
static inline int32_t
int_at(const uint8_t *at)
{
	int32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* A pointer in one of the DW_EH_PE encodings; data_base is .eh_frame_hdr's address. */
static uintptr_t
read_pointer(struct cursor *c, uint8_t encoding, uintptr_t data_base)
{
	uintptr_t here = c->section->address + c->at;
	uint64_t  value = 0;

	if (encoding == 0xff) /* omitted */
		return 0;
	switch (encoding & 0x0f) {
	case 0x00: /* absptr */
	case 0x04: /* udata8 */
	case 0x0c: value = read_fixed(c, 8); break;
	case 0x01: value = read_uleb(c); break;
	case 0x02: value = read_fixed(c, 2); break;
	case 0x03: value = read_fixed(c, 4); break;
	case 0x09: value = (uint64_t)read_sleb(c); break;
	case 0x0a: value = (uint64_t)(int64_t)(int16_t)read_fixed(c, 2); break;
	case 0x0b: value = (uint64_t)(int64_t)(int32_t)read_fixed(c, 4); break;
	default: c->bad = true;
	}
	switch (encoding & 0x70) {
	case 0x00: break;
	case 0x10: value += here; break;
	case 0x30: value += data_base; break;
	default: c->bad = true; /* text, function, aligned: not in .eh_frame */
	}
	if (encoding & 0x80) /* through memory: only personalities, whose value is not used */
		return 0;
	return (uintptr_t)value;
}

/* A record's extent; false at the terminator or when it does not fit. */
static bool
read_record(struct cursor *c)
{
	uint64_t length = read_fixed(c, 4);

	if (length == 0xffffffff)
		length = read_fixed(c, 8);
	if (c->bad || length == 0 || length > c->end - c->at)
		return false;
	c->end = c->at + (size_t)length;
	return true;
}

#endif
