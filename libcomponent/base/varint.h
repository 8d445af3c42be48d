/*
 * varint.h - numbers of 7 bits a byte, the low ones first: protobuf's and Go's varint, DWARF's LEB128.
 *
 * May be called in a signal handler.
 */
#ifndef BASE_VARINT_H
#define BASE_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VARINT_MAX 10 /* bytes */

/* Returns how many bytes. */
static inline size_t
varint_write(uint8_t *p, uint64_t v)
{
	size_t n = 0;

	for (; v > 127; v >>= 7)
		p[n++] = (uint8_t)(v | 128);
	p[n++] = (uint8_t)v;
	return n;
}

static inline size_t
varint_size(uint64_t v)
{
	size_t n = 1;

	for (; v > 127; v >>= 7)
		n++;
	return n;
}

/* From *p on, which is moved behind it; bits above the 64th are dropped.  0 and *bad: it does not
 * end before end.  is_signed: its last bit is the sign. */
static inline uint64_t
varint_read(const uint8_t **p, const uint8_t *end, bool is_signed, bool *bad)
{
	uint64_t v = 0;

	for (unsigned shift = 0; *p < end;) {
		uint8_t b = *(*p)++;

		if (shift < 64)
			v |= (uint64_t)(b & 127) << shift;
		shift += 7;
		if (b & 128)
			continue;
		return is_signed && b & 64 && shift < 64 ? v | ~(uint64_t)0 << shift : v;
	}
	*bad = true;
	return 0;
}

#endif
