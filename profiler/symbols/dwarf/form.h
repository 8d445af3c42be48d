/*
 * form.h - reading numbers and attribute values of debug information.
 */
#ifndef SYMBOLS_DWARF_FORM_H
#define SYMBOLS_DWARF_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A piece of bytes being read.  Past its end everything is 0, and bad is set. */
struct dwarf_cursor {
	const unsigned char *p, *end;
	bool                 bad;
};

/* How a unit writes its numbers. */
struct dwarf_encoding {
	uint16_t version;
	uint8_t  address_size; /* 4 or 8 */
	uint8_t  offset_size;  /* 4 or 8 */
};

enum dwarf_class {
	DWARF_NONE,
	DWARF_NUMBER,     /* constants, flags, offsets of other sections */
	DWARF_ADDRESS,
	DWARF_ADDRESS_INDEX,
	DWARF_STRING,     /* in place: text and size */
	DWARF_STRING_STR, /* an offset of .debug_str, and so on */
	DWARF_STRING_LINE,
	DWARF_STRING_ALT,
	DWARF_STRING_INDEX,
	DWARF_REF_UNIT,   /* from the unit's start */
	DWARF_REF_INFO,   /* an offset of .debug_info */
	DWARF_REF_ALT,    /* the same, of the supplementary file */
	DWARF_LIST_INDEX,
	DWARF_OTHER,      /* nothing we look at */
};

struct dwarf_value {
	enum dwarf_class class;
	uint64_t         u; /* or the length of text */
	const char      *text;
};

uint64_t dwarf_uleb(struct dwarf_cursor *c);
int64_t  dwarf_sleb(struct dwarf_cursor *c);
/* A length, whose first 4 bytes say whether offsets have 4 bytes or 8. */
uint64_t dwarf_length(struct dwarf_cursor *c, uint8_t *ret_offset_size);
uint64_t dwarf_number(struct dwarf_cursor *c, unsigned size); /* 1, 2, 3, 4 or 8 bytes */
/* A form that is unknown sets bad: what follows it cannot be found. */
void     dwarf_form(struct dwarf_cursor *c, const struct dwarf_encoding *e, unsigned form,
	    int64_t implicit, struct dwarf_value *ret);
void     dwarf_form_skip(struct dwarf_cursor *c, const struct dwarf_encoding *e, unsigned form);
/* Bytes of a form whose size is always the same, else -1. */
int      dwarf_form_size(const struct dwarf_encoding *e, unsigned form);

/* p may be NULL: then it is at its end and bad. */
static inline struct dwarf_cursor
dwarf_cursor_of(const unsigned char *p, size_t n)
{
	return (struct dwarf_cursor){ p, p ? p + n : NULL, !p };
}

static inline bool
dwarf_skip(struct dwarf_cursor *c, uint64_t n)
{
	if (n > (uint64_t)(c->end - c->p)) {
		c->bad = true;
		c->p = c->end;
		return false;
	}
	c->p += n;
	return true;
}

static inline bool
dwarf_at_end(const struct dwarf_cursor *c)
{
	return c->p >= c->end;
}

#endif
