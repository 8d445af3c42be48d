/*
 * html.h - the viewer (viewer/) with a profile inside: one file for a ticket or a mail, which asks nobody for anything.
 *
 *     html_open(&h, page, size, "cpu.pb.gz", write, arg)  the page up to where the profile goes
 *     html_write(&h, bytes, n) ...                        the profile: any pprof file, as base64
 *     html_close(&h)                                      the rest
 *
 *   returns  0 or a negative errno; html_open(): -EINVAL: the page has no place for one
 *   owns     page must stay until html_close(); no other memory is taken
 *   threads  any, one at a time for one struct html
 *   source   profiler/encode/html.c
 */
#ifndef ENCODE_HTML_H
#define ENCODE_HTML_H

#include <stddef.h>

#include "encode.h"
#include "text.h"

/* The file as it lies there, gzip'd.  0 or a negative errno: -EINVAL: it is no such file; -EFBIG. */
int html_file_read(const char *path, struct text *ret);
/* The page in it; ret holds a part of it after an error. */
int html_page_read(const char *path, struct text *ret);

struct html {
	const char      *rest; /* of the page */
	size_t           rest_size;
	encode_write_fn *write;
	void            *arg;
	unsigned char    left[3]; /* bytes that make no four letters yet */
	unsigned         left_count;
};

int html_open(struct html *h, const char *page, size_t size, const char *name, encode_write_fn *write, void *arg);
int html_write(void *h, const void *data, size_t size); /* an encode_write_fn */
int html_close(struct html *h);

#endif
