/*
 * gzip.c - one gzip member, written or read through a callback in pieces.
 *
 * Level 1: deflate is most of the time it takes to write a profile, and level 6 costs
 * half as much again or more for little.  zlib's 260 KiB come from the arena through
 * zalloc, so the daemon's malloc is not used.
 *
 * Tests: tests/encode/test_pprof.c
 */
#include <config.h>

#include "gzip.h"

#include <errno.h>
#include <string.h>

#define BATCH  ((size_t)32 << 10) /* bytes given to zlib at once: its calls cost more than small messages */
#define PIECE  ((size_t)64 << 10) /* bytes handed to the callback at once, at most */
#define WINDOW (15 + 16)          /* 32 KiB; + 16 asks for a gzip header */
#define MEMORY 8                  /* zlib's default */
#define INFLATE_MAX ((size_t)1 << 20) /* bytes that it takes, and our piece */
#define OS_UNKNOWN 255            /* what Go writes: the same bytes on every system */

int
gzip_open(struct gzip *g, struct arena *a, encode_write_fn *write, void *arg)
{
	*g = (struct gzip){ .arena = a, .write = write, .arg = arg };
	g->header.os = OS_UNKNOWN;
	g->z.zalloc = arena_zalloc;
	g->z.zfree = arena_keep;
	g->z.opaque = a;
	g->buf = arena_alloc(a, PIECE);
	g->batch = arena_alloc(a, BATCH);
	if (!g->buf || !g->batch ||
	    deflateInit2(&g->z, 1, Z_DEFLATED, WINDOW, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	deflateSetHeader(&g->z, &g->header);
	g->z.next_out = g->buf;
	g->z.avail_out = PIECE;
	return 0;
}

static int
flush(struct gzip *g)
{
	int r = g->write(g->arg, g->buf, PIECE - g->z.avail_out);

	g->z.next_out = g->buf;
	g->z.avail_out = PIECE;
	return r < 0 ? r : 0;
}

static int
compress_all(struct gzip *g, const void *data, size_t size)
{
	g->z.next_in = (z_const Bytef *)data;
	while (size) {
		int r;

		g->z.avail_in = size < UINT32_MAX ? (uInt)size : UINT32_MAX;
		size -= g->z.avail_in;
		while (g->z.avail_in) {
			if (deflate(&g->z, Z_NO_FLUSH) != Z_OK)
				return -EIO;
			if (g->z.avail_out)
				continue;
			r = flush(g);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int
batch_compress(struct gzip *g)
{
	size_t size = g->used;

	g->used = 0;
	return size ? compress_all(g, g->batch, size) : 0;
}

int
gzip_write(struct gzip *g, const void *data, size_t size)
{
	int r = 0;

	if (size > BATCH - g->used)
		r = batch_compress(g);
	if (r < 0 || size > BATCH)
		return r < 0 ? r : compress_all(g, data, size);
	memcpy(g->batch + g->used, data, size);
	g->used += size;
	return 0;
}

int
gzip_finish(struct gzip *g)
{
	int r = batch_compress(g);

	if (r < 0)
		return r;
	for (;;) {
		int z = deflate(&g->z, Z_FINISH);

		if (z != Z_OK && z != Z_STREAM_END)
			return -EIO;
		r = g->z.avail_out < PIECE ? flush(g) : 0;
		if (r < 0 || z == Z_STREAM_END)
			return r;
	}
}

int
encode_gzip(const void *data, size_t size, encode_write_fn *write, void *arg)
{
	struct arena_budget budget = { .limit = GZIP_MEMORY_MAX };
	struct arena        arena;
	struct gzip         g;
	int                 r;

	arena_init(&arena, &budget);
	r = gzip_open(&g, &arena, write, arg);
	if (r == 0)
		r = gzip_write(&g, data, size);
	if (r == 0)
		r = gzip_finish(&g);
	arena_release(&arena);
	return r;
}

static int
inflate_all(z_stream *z, unsigned char *buf, encode_write_fn *write, void *arg)
{
	int r = 0, done;

	do {
		z->next_out = buf;
		z->avail_out = PIECE;
		done = inflate(z, Z_NO_FLUSH);
		if (done != Z_OK && done != Z_STREAM_END)
			return -EINVAL;
		if (z->avail_out < PIECE)
			r = write(arg, buf, PIECE - z->avail_out);
	} while (r >= 0 && done != Z_STREAM_END);
	return r < 0 ? r : 0;
}

int
gzip_inflate(const void *data, size_t size, encode_write_fn *write, void *arg)
{
	struct arena_budget budget = { .limit = INFLATE_MAX };
	struct arena        arena;
	unsigned char      *buf;
	z_stream            z = { .zalloc = arena_zalloc, .zfree = arena_keep, .opaque = &arena,
		.next_in = (z_const Bytef *)data, .avail_in = (uInt)size };
	int                 r = -ENOMEM;

	if (size > UINT32_MAX)
		return -EFBIG;
	arena_init(&arena, &budget);
	buf = arena_alloc(&arena, PIECE);
	if (buf && inflateInit2(&z, WINDOW) == Z_OK)
		r = inflate_all(&z, buf, write, arg);
	arena_release(&arena);
	return r;
}
