/*
 * checkpoints.c - the last whole profile or trace of an answer that has several, one behind the other.
 *
 * Where a gzip member ends only who unpacks it knows.
 *
 * Tests: tests/componentctl/ends_meanwhile.t
 */
#include <config.h>

#include "checkpoints.h"

#include <stdbool.h>
#include <stdint.h>
#include <zlib.h>

#define GZIP     (16 + MAX_WBITS)
#define WORK_MAX ((uint64_t)8 << 30) /* bytes unpacked, of which none is kept: half a minute */

/* Is there a whole member?  z goes behind it. */
static bool
member_skip(z_stream *z, uint64_t *work)
{
	unsigned char room[32 << 10];
	int           r;

	do {
		z->next_out = room;
		z->avail_out = sizeof(room);
		r = inflate(z, Z_NO_FLUSH);
		*work += sizeof(room) - z->avail_out;
	} while (r == Z_OK && *work <= WORK_MAX);
	return r == Z_STREAM_END && inflateReset(z) == Z_OK;
}

size_t
checkpoints_last(const unsigned char *data, size_t size, size_t *ret_size)
{
	z_stream z = { .next_in = (z_const Bytef *)data, .avail_in = size < UINT32_MAX ? (uInt)size : UINT32_MAX };
	uint64_t work = 0;
	size_t   at, found = 0;

	*ret_size = size;
	if (inflateInit2(&z, GZIP) != Z_OK)
		return 0;
	*ret_size = 0;
	for (at = 0; at < size && member_skip(&z, &work); at = (size_t)(z.next_in - data)) {
		found = at;
		*ret_size = (size_t)(z.next_in - data) - at;
	}
	inflateEnd(&z);
	return found;
}
