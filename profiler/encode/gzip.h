/*
 * gzip.h - one gzip member, written or read through a callback in pieces.
 */
#ifndef ENCODE_GZIP_H
#define ENCODE_GZIP_H

#include <zlib.h>

#include "arena.h"
#include "encode.h"

#define GZIP_MEMORY_MAX ((size_t)1 << 20) /* bytes of the arena that writing one takes at most */

struct gzip {
	z_stream         z;
	gz_header        header;
	struct arena    *arena;
	unsigned char   *buf;
	unsigned char   *batch; /* what was written and not compressed yet */
	size_t           used;
	encode_write_fn *write;
	void            *arg;
};

/* All memory is the arena's; nothing to release.  0 or a negative errno. */
int gzip_open(struct gzip *g, struct arena *a, encode_write_fn *write, void *arg);
int gzip_write(struct gzip *g, const void *data, size_t size);
int gzip_finish(struct gzip *g);

/* The other way: what a whole member has in it, in pieces.  0; -EINVAL: it is damaged; or what write said. */
int gzip_inflate(const void *data, size_t size, encode_write_fn *write, void *arg);

#endif
