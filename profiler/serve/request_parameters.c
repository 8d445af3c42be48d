/*
 * request_parameters.c - which profile a name means, and what its parameters ask for.
 *
 *     "seconds=5&debug=1", or a call's options --> struct request_parameters
 *     name, struct request_parameters --> struct job_spec, or a sentence for a 400
 *
 * By the rules of Go's net/http/pprof: "seconds" is looked at before "debug", what
 * cannot be read is 30 s for a window and an error for a delta.  Whoever wants a profile
 * without HTTP asks in the same words, so that there is one set of rules.
 *
 * Tests: tests/http/protocol.t, tests/serve/delta.t, tests/serve/profile_write.t.
 */
#include <config.h>

#include "request_parameters.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collect.h"
#include "query.h"

#define PARAM_MAX       256 /* bytes of a value that we know what to do with */
#define FOREVER_SECONDS 9e9 /* in nanoseconds it is more than an int64_t holds */

const struct collector *
request_parameters_collector(const char *name)
{
	const struct collector *c = collector_find(name);

	return c && c->products ? c : NULL;
}

static int
refuse(char *why, const char *text)
{
	snprintf(why, REQUEST_PARAMETERS_WHY_BYTES, "%s", text);
	return -EINVAL;
}

void
request_parameters_of_query(const char *query, struct request_parameters *ret)
{
	char    value[PARAM_MAX];
	int64_t number;

	*ret = (struct request_parameters){ .own = true };
	query_get(query, "format", ret->format, sizeof(ret->format));
	query_get(query, "debug", value, sizeof(value));
	query_int(value, &ret->debug);
	query_get(query, "gc", value, sizeof(value));
	ret->gc = !query_int(value, &number) && number > 0;
	query_get(query, "own", value, sizeof(value));
	ret->own = query_int(value, &number) || number != 0;
	query_get(query, "seconds", value, sizeof(value));
	ret->timed = *value;
	ret->bad_seconds = query_float(value, &ret->seconds) != 0;
	ret->bad_whole = query_int(value, &ret->whole) != 0;
}

/* A format by its name, else by debug, which Go has no meaning for where there is a window. */
static int
format_choose(const struct request_parameters *asked, struct job_spec *spec, char *why)
{
	const struct collector *c = spec->collector;
	const struct format    *text;
	int                     n;

	spec->format = format_usual(c->products);
	if (*asked->format) {
		spec->format = format_find(c->products, asked->format);
		if (spec->format)
			return 0;
		n = snprintf(why, REQUEST_PARAMETERS_WHY_BYTES, "unknown \"format\"; ");
		format_advice(c->products, why + n, REQUEST_PARAMETERS_WHY_BYTES - (size_t)n);
		strncat(why, ", or leave it out", REQUEST_PARAMETERS_WHY_BYTES - strlen(why) - 1);
		return -EINVAL;
	}
	if (asked->debug != 0 && !collector_is_windowed(c)) {
		text = format_of_debug(c->products, c->text, asked->debug > 0 ? asked->debug : 1);
		spec->format = text ? text : spec->format;
	}
	return 0;
}

/* Longer than is allowed is -EINVAL and a sentence. */
static int
seconds_set(double seconds, int64_t max_seconds, struct job_spec *spec, char why[REQUEST_PARAMETERS_WHY_BYTES])
{
	if (seconds > (double)max_seconds) {
		snprintf(why, REQUEST_PARAMETERS_WHY_BYTES, "\"seconds\" is above the limit of %lld (--profiling-max-seconds)",
			(long long)max_seconds);
		return -EINVAL;
	}
	/* Who has set no limit to speak of may be asked for more than a clock can say. */
	spec->wait_ns = seconds < FOREVER_SECONDS ? (int64_t)(seconds * 1e9) : INT64_MAX;
	return 0;
}

/* What cannot be read, or is not above 0, is the usual time. */
static int
window_read(const struct request_parameters *asked, int64_t max_seconds, struct job_spec *spec, char *why)
{
	bool   fractions = spec->collector->fractions, bad = fractions ? asked->bad_seconds : asked->bad_whole;
	double seconds = fractions ? asked->seconds : (double)asked->whole;
	int    r;

	if (!(seconds > 0)) /* nobody has asked for more than is allowed */
		seconds = spec->collector->seconds < max_seconds ? spec->collector->seconds : (double)max_seconds;
	else if (bad)
		seconds = spec->collector->seconds;
	r = seconds_set(seconds, max_seconds, spec, why);
	return r ? r : format_choose(asked, spec, why);
}

static int
snapshot_read(const struct request_parameters *asked, int64_t max_seconds, struct job_spec *spec, char *why)
{
	const struct collector *c = spec->collector;
	int                     r;

	spec->params.gc = c->takes_gc && asked->gc;
	spec->params.own = !c->takes_own || asked->own;
	if (asked->timed) {
		if (asked->bad_whole || asked->whole <= 0)
			return refuse(why, "invalid value for \"seconds\" - must be a positive integer");
		if (c->no_delta)
			return refuse(why, "\"seconds\" parameter is not supported for this profile type");
		spec->delta = true;
	}
	r = format_choose(asked, spec, why);
	if (r)
		return r;
	if (spec->delta && spec->format->debug)
		return refuse(why, "seconds and debug params are incompatible");
	spec->params.each = format_takes(spec->format) == PRODUCT_DUMP;
	return seconds_set((double)asked->whole, max_seconds, spec, why);
}

int
request_parameters_job(const struct collector *c, const char *name, const struct request_parameters *asked, int64_t max_seconds,
	struct job_spec *ret, char why[REQUEST_PARAMETERS_WHY_BYTES])
{
	*ret = (struct job_spec){ .run = collect_run, .collector = c, .name = name };
	return collector_is_windowed(c) ? window_read(asked, max_seconds, ret, why) :
					  snapshot_read(asked, max_seconds, ret, why);
}
