/*
 * format.h - a form that a profile, a dump, a trace or a table can be written in: one row each.
 *
 * A new one is a function in a file of its own and a row in format.c; routes, parameters
 * and component_profile_write() have it then.
 */
#ifndef ENCODE_FORMAT_H
#define ENCODE_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "encode.h"
#include "product.h"
#include "view.h"

struct format {
	const char *name;   /* of ?format=; NULL: debug= alone chooses it */
	int         debug;  /* the debug= that chooses it; 2: all above too; 0: none does */
	enum product_text text; /* with debug 1: of the collectors that have this text */
	bool        binary; /* a file to be saved; else text to be read */
	bool        packed; /* it is one gzip member by itself */
	const char *mime;   /* its media type; NULL: as binary says */
	bool        page;   /* for browsers: what is written is to be put into one by html.h */
	/* One of these five says what it takes; viewed: a profile, and a view of it. */
	int (*profile)(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg);
	int (*viewed)(const struct profile *p, const struct view *v, struct symbols *s, encode_write_fn *write, void *arg);
	int (*dump)(const struct dump *d, struct symbols *s, encode_write_fn *write, void *arg);
	int (*residence)(const struct residence *t, struct symbols *s, encode_write_fn *write, void *arg);
	const struct trace_format *trace;
};

enum product_type format_takes(const struct format *f);
/* The first row for these products (PRODUCT_PROFILE | ...): what is sent to those who ask for none.
 * NULL: there is none. */
const struct format *format_usual(unsigned products);
/* The one of that name; NULL: none that takes one of these products. */
const struct format *format_find(unsigned products, const char *name);
/* The one for debug=, which is above 0; NULL likewise. */
const struct format *format_of_debug(unsigned products, enum product_text text, int64_t debug);
/* "write format=top, format=folded, format=svg or format=html": all but the usual one. */
void format_advice(unsigned products, char *buf, size_t size);
/* "format=top and format=folded": those that take a view. */
void format_viewed(char *buf, size_t size);
/* Of the product that it takes; v may be NULL where that is no profile; else as encode.h says.  Addresses of a dump that
 * have no tags get them. */
int format_write(const struct format *f, struct product *p, const struct view *v, struct symbols *s,
	encode_write_fn *write, void *arg);
/* The same, as one gzip member whether the form is one by itself or not. */
int format_write_member(const struct format *f, struct product *p, const struct view *v, struct symbols *s,
	encode_write_fn *write, void *arg);

#endif
