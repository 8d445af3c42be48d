/*
 * profile_request.h - a profile that is asked for: which collector a name means, and what is asked of it.
 *
 *   threads  any
 *   source   profiler/serve/profile_request.c
 */
#ifndef SERVE_PROFILE_REQUEST_H
#define SERVE_PROFILE_REQUEST_H

#include "job.h"
#include "nearest.h"

#define PROFILE_REQUEST_WHY_BYTES    256
#define PROFILE_REQUEST_FORMAT_BYTES 256
#define PROFILE_REQUEST_BAD_BYTES    256
#define PROFILE_REQUEST_TYPE_BYTES   64

/* Any collector there is, or NULL. */
const struct collector *profile_request_collector(const char *name);
/* Tries the names of all that there are. */
void profile_request_near(struct nearest *near);
/* What is asked of one, by a query or by a call. */
struct profile_request {
	char    format[PROFILE_REQUEST_FORMAT_BYTES]; /* "": not said */
	int64_t debug;
	bool    gc, own, idle;
	bool    timed;   /* seconds are said, be it in a way that cannot be read */
	double  seconds; /* as a number with a fraction, */
	int64_t whole;   /* and as one without; both 0 if there is none */
	bool    bad_seconds, bad_whole; /* they are no such number, or none that can be told */
	/* What of it is shown, "" and 0 where it is not said. */
	bool    viewed;  /* anything is */
	char    focus[PATTERN_BYTES + 1], ignore[PATTERN_BYTES + 1]; /* what is too long fills them */
	char    sample_index[PROFILE_REQUEST_TYPE_BYTES];
	bool    cum, bad_cum;
	int64_t rows;
	bool    bad_rows;
	char    window[JOB_WINDOW_BYTES + 1]; /* by which it can be ended early; what is too long fills it */
	int64_t checkpoint; /* seconds; 0: not said */
	bool    bad_checkpoint;
	char    bad[PROFILE_REQUEST_BAD_BYTES]; /* a sentence: a parameter that nobody knows, for who names a format; or "" */
};
void profile_request_of_query(const char *query, struct profile_request *ret);
/* A job for that, of the collector by that name; 0, or -EINVAL and a sentence.  name must stay. */
int  profile_request_job(const struct collector *c, const char *name, const struct profile_request *asked,
	int64_t max_seconds, struct job_spec *ret, char why[PROFILE_REQUEST_WHY_BYTES]);

#endif
