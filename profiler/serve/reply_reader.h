/*
 * reply_reader.h - one reply of our own server, taken apart as its bytes arrive.
 */
#ifndef SERVE_REPLY_READER_H
#define SERVE_REPLY_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPLY_HEAD_MAX 16384 /* bytes: ours are below 1 KiB but for a Location as long as its request */

struct reply_reader {
	enum { REPLY_IN_HEAD, REPLY_IN_BODY, REPLY_AT_SIZE, REPLY_IN_CHUNK, REPLY_AT_LAST, REPLY_DONE } state;
	bool     head_only; /* the answer to HEAD */
	bool     chunked;
	unsigned digits;    /* of the size that is being read */
	uint64_t left;      /* of the body, or of the chunk */
	size_t   head_size;
	size_t   next;      /* in head, for reply_header() */
	int      status;
	const char *reason;
	char     head[REPLY_HEAD_MAX + 1];
};

enum reply_part {
	REPLY_MORE, /* all was taken; give more */
	REPLY_HEAD, /* status, reason and reply_header() are there; once */
	REPLY_DATA, /* *ret_data, *ret_size: bytes of the body */
	REPLY_END,  /* it was whole; what follows is not looked at */
	REPLY_BAD,  /* not what our server sends */
};

void reply_reader_init(struct reply_reader *r, bool head_only);
/* Takes the next part off *p, *size; to be called until it says REPLY_MORE, _END or _BAD. */
enum reply_part reply_next(struct reply_reader *r, const char **p, size_t *size, const char **ret_data, size_t *ret_size);
/* Each header in turn, strings inside of r; false: that was all.  Without what tells of the
 * connection that it came by (Connection, Transfer-Encoding). */
bool reply_header(struct reply_reader *r, const char **ret_name, const char **ret_value);

#endif
