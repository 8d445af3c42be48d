/*
 * spec.h - which collector a name means, and what is asked of it.
 *
 *   threads  any
 *   source   profiler/serve/spec.c
 */
#ifndef SERVE_SPEC_H
#define SERVE_SPEC_H

#include "job.h"

#define SPEC_WHY_BYTES    256
#define SPEC_FORMAT_BYTES 256

/* Any collector there is, or NULL. */
const struct collector *spec_collector(const char *name);
/* What is asked of one, by a query or by a call. */
struct spec_asked {
	char    format[SPEC_FORMAT_BYTES]; /* "": not said */
	int64_t debug;
	bool    gc, own;
	bool    timed;   /* seconds are said, be it in a way that cannot be read */
	double  seconds; /* as a number with a fraction, */
	int64_t whole;   /* and as one without; both 0 if there is none */
	bool    bad_seconds, bad_whole; /* they are no such number, or none that can be told */
};
void spec_query_read(const char *query, struct spec_asked *ret);
/* A job for that, of the collector by that name; 0, or -EINVAL and a sentence.  name must stay. */
int  spec_read(const struct collector *c, const char *name, const struct spec_asked *asked, int64_t max_seconds,
	struct job_spec *ret, char why[SPEC_WHY_BYTES]);

#endif
