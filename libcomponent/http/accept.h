/*
 * accept.h - what a client wants, from headers that list it: "text/html;level=1;q=0.5, ...".
 *
 *   threads  any; no memory
 *   source   libcomponent/http/accept.c
 */
#ifndef HTTP_ACCEPT_H
#define HTTP_ACCEPT_H

#include <stdbool.h>
#include <stddef.h>

#define ACCEPT_QUALITY_MAX 1000 /* q=1, and where there is no q */

/* One of the list; not NUL-terminated. */
struct accept_entry {
	const char *name;       /* "text/html" */
	size_t      name_size;
	const char *parameters; /* "level=1;q=0.5" */
	size_t      parameters_size;
	int         quality;    /* 0 to ACCEPT_QUALITY_MAX: 0 is not wanted */
};

/* Start with *at the header, NULL is fine.  false: there is none any more. */
bool accept_next(const char **at, struct accept_entry *ret);
bool accept_is(const struct accept_entry *e, const char *name);
/* The value of a parameter, and its bytes; NULL: it has none. */
const char *accept_parameter(const struct accept_entry *e, const char *name, size_t *ret_size);
/* Of the word in the list; 0 where that does not have it. */
int  accept_quality(const char *header, const char *name);

#endif
