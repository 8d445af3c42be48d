/*
 * query.h - a query as Go's Request.FormValue reads it.
 *
 *   threads  any
 *   source   profiler/serve/query.c
 */
#ifndef SERVE_QUERY_H
#define SERVE_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUERY_NAME_BYTES 64 /* of a pair, with NUL */

/* One "name=value". */
struct query_pair {
	char        name[QUERY_NAME_BYTES];
	bool        readable; /* as far as the name goes; else Go leaves it out */
	const char *value;    /* with its escapes */
	size_t      size;
};

/* The next one; *query is moved on, and may be NULL. */
bool query_next(const char **query, struct query_pair *ret);
/* Without its escapes; false: it has bad ones, or a NUL.  What is too long is cut. */
bool query_value(const struct query_pair *pair, char *buf, size_t size);
bool query_get(const char *query, const char *name, char *buf, size_t size); /* the first that can be read */
int  query_int(const char *text, int64_t *ret); /* -EINVAL: 0; -ERANGE: the nearest there is */

/* As Go's ParseFloat, in every locale, and hexadecimal without an exponent; what is further from 0 than 1e300 is told as that.
 * -EINVAL: no number, or "inf" or "nan"; -ENOMEM. */
int  query_float(const char *text, double *ret);

#endif
