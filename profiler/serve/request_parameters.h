/*
 * request_parameters.h - which collector a name means, and what is asked of it.
 *
 *   threads  any
 *   source   profiler/serve/request_parameters.c
 */
#ifndef SERVE_REQUEST_PARAMETERS_H
#define SERVE_REQUEST_PARAMETERS_H

#include "job.h"

#define REQUEST_PARAMETERS_WHY_BYTES    256
#define REQUEST_PARAMETERS_FORMAT_BYTES 256

/* Any collector there is, or NULL. */
const struct collector *request_parameters_collector(const char *name);
/* What is asked of one, by a query or by a call. */
struct request_parameters {
	char    format[REQUEST_PARAMETERS_FORMAT_BYTES]; /* "": not said */
	int64_t debug;
	bool    gc, own;
	bool    timed;   /* seconds are said, be it in a way that cannot be read */
	double  seconds; /* as a number with a fraction, */
	int64_t whole;   /* and as one without; both 0 if there is none */
	bool    bad_seconds, bad_whole; /* they are no such number, or none that can be told */
};
void request_parameters_of_query(const char *query, struct request_parameters *ret);
/* A job for that, of the collector by that name; 0, or -EINVAL and a sentence.  name must stay. */
int  request_parameters_job(const struct collector *c, const char *name, const struct request_parameters *asked, int64_t max_seconds,
	struct job_spec *ret, char why[REQUEST_PARAMETERS_WHY_BYTES]);

#endif
