/*
 * fetch.h - one answer of a profiling server, or of several at once.
 *
 *   limits   FETCH_BYTES_MAX of an answer
 *   threads  one at a time
 *   source   components/componentctl/target/fetch.c
 */
#ifndef COMPONENTCTL_FETCH_H
#define COMPONENTCTL_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <component/error.h>

#include "target.h"

#define FETCH_BYTES_MAX ((size_t)512 << 20) /* bytes: a trace of minutes */
#define FETCH_KEPT "%s\nWhat it has measured in the first %.1f s is kept.\n" /* the sentence of -EPIPE, seconds */

struct fetched {
	unsigned char *data; /* malloc'd */
	size_t         size;
	bool           is_cut; /* the server went away before it said that this is all */
	bool           has_checkpoints; /* it has sent such, of which data has the last whole one */
};

/*
 * fetch - GET URL/WHAT?QUERY
 *
 *   seconds  how long the server measures first; 0: it does not
 *   shows_bar  a bar on stderr shows that, if stderr is a terminal
 *   token    a file with the server's token; NULL or "": none
 *   returns  0; -EPIPE: the server went away, and data is what came until then; or another errno, and err is a
 *            sentence: what, why, what to write instead
 */
int  fetch(const struct target *t, const char *what, const char *query, int64_t seconds, bool shows_bar, const char *token,
	struct fetched *ret, struct component_error *err);
void fetch_release(struct fetched *f);

/* One of several servers. */
struct fetching {
	const struct target   *target;
	struct fetched         fetched;
	int                    result; /* as fetch() returns it; not 0 before: it is not asked */
	struct component_error err;
};

/* All for the same at the same time, until the last has answered; one bar is for all.  0; or a negative errno and a
 * sentence: none was asked. */
int  fetch_each(struct fetching *all, size_t count, const char *what, const char *query, int64_t seconds, bool shows_bar,
	const char *token, struct component_error *err);

/* From now on this process may have as many descriptors as it is allowed to ask for. */
void fetch_many_files(void);

/* Adds to what is there: as encode_write_fn. */
int  fetch_add(void *fetched, const void *data, size_t size);

#endif
