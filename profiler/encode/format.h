/*
 * format.h - a form that a profile, a dump or a trace can be written in: one row each.
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

struct format {
	const char *name;   /* "top": of ?format=; NULL: there is only debug= */
	int         debug;  /* that chooses it, 2 stands for all above; 0: none does */
	enum product_text text; /* with debug 1: for which collectors */
	bool        binary; /* a file to be saved; else text to be read */
	/* One of them. */
	int (*profile)(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg);
	int (*dump)(const struct dump *d, struct symbols *s, encode_write_fn *write, void *arg);
	const struct trace_format *trace;
};

enum product_type format_takes(const struct format *f);
/* The first row for these products (PRODUCT_PROFILE | ...): what is sent to who asks for none. */
const struct format *format_usual(unsigned products);
/* By name, NULL: there is none for these products. */
const struct format *format_find(unsigned products, const char *name);
/* By debug=, which is above 0; NULL likewise. */
const struct format *format_of_debug(unsigned products, enum product_text text, int64_t debug);
/* "write format=top or format=folded": all but the usual one. */
void format_advice(unsigned products, char *buf, size_t size);
/* Of the product that it takes; else as encode.h says. */
int format_write(const struct format *f, const struct product *p, struct symbols *s, encode_write_fn *write, void *arg);

#endif
