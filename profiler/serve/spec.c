/*
 * spec.c - which profile a name means, and what its parameters ask for.
 *
 *     name, "seconds=5&debug=1" --> struct job_spec, or a sentence for a 400
 *
 * By the rules of Go's net/http/pprof: "seconds" is looked at before "debug", what
 * cannot be read is 30 s for a window and an error for a delta.  Whoever wants a profile
 * without HTTP comes through here as well, so that there is one set of rules.
 *
 * Tests: tests/serve_http.t, tests/serve_delta.t, tests/profile_write.t.
 */
#include <config.h>

#include "serve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "custom.h"

#define PARAM_MAX       256 /* bytes of a value that we know what to do with */
#define FOREVER_SECONDS 9e9 /* in nanoseconds it is more than an int64_t holds */

const struct collector *
spec_collector(const char *name)
{
	const struct collector *c = collector_find(name);

	if (!c)
		c = custom_find(name);
	return c && c->products ? c : NULL;
}

static int
refuse(char *why, const char *text)
{
	snprintf(why, SPEC_WHY_BYTES, "%s", text);
	return -EINVAL;
}

/* ?format=, else debug=, which Go has no meaning for where there is a window. */
static int
format_read(const char *query, struct job_spec *spec, char *why)
{
	const struct collector *c = spec->collector;
	char                    value[PARAM_MAX];
	int64_t                 debug;
	int                     n;

	spec->format = format_usual(c->products);
	if (param_get(query, "format", value, sizeof(value)) && *value) {
		spec->format = format_find(c->products, value);
		if (spec->format)
			return 0;
		n = snprintf(why, SPEC_WHY_BYTES, "unknown \"format\"; ");
		format_advice(c->products, why + n, SPEC_WHY_BYTES - (size_t)n);
		strncat(why, ", or leave it out", SPEC_WHY_BYTES - strlen(why) - 1);
		return -EINVAL;
	}
	param_get(query, "debug", value, sizeof(value));
	param_int(value, &debug);
	if (debug != 0 && !collector_is_windowed(c))
		spec->format = format_of_debug(c->products, c->text, debug > 0 ? debug : 1);
	return 0;
}

/* Longer than is allowed is -EINVAL and a sentence. */
static int
seconds_set(double seconds, int64_t max_seconds, struct job_spec *spec, char why[SPEC_WHY_BYTES])
{
	if (seconds > (double)max_seconds) {
		snprintf(why, SPEC_WHY_BYTES, "\"seconds\" is above the limit of %lld (--profiling-max-seconds)",
			(long long)max_seconds);
		return -EINVAL;
	}
	/* Who has set no limit to speak of may be asked for more than a clock can say. */
	spec->wait_ns = seconds < FOREVER_SECONDS ? (int64_t)(seconds * 1e9) : INT64_MAX;
	return 0;
}

/* What cannot be read, or is not above 0, is the usual time. */
static int
window_read(const char *query, int64_t max_seconds, struct job_spec *spec, char *why)
{
	char    value[PARAM_MAX];
	double  seconds;
	int64_t whole;
	bool    bad;
	int     r;

	param_get(query, "seconds", value, sizeof(value));
	if (spec->collector->fractions) {
		bad = param_float(value, &seconds) != 0;
	} else {
		bad = param_int(value, &whole) != 0;
		seconds = (double)whole;
	}
	if (!(seconds > 0)) /* nobody has asked for more than is allowed */
		seconds = spec->collector->seconds < max_seconds ? spec->collector->seconds : (double)max_seconds;
	else if (bad)
		seconds = spec->collector->seconds;
	r = seconds_set(seconds, max_seconds, spec, why);
	return r ? r : format_read(query, spec, why);
}

/* "gc=1": above 0; `usual` where it is not there or no number. */
static bool
switch_read(const char *query, const char *name, bool usual)
{
	char    value[PARAM_MAX];
	int64_t number;

	if (!param_get(query, name, value, sizeof(value)) || param_int(value, &number))
		return usual;
	return usual ? number != 0 : number > 0;
}

static int
snapshot_read(const char *query, int64_t max_seconds, struct job_spec *spec, char *why)
{
	const struct collector *c = spec->collector;
	char                    value[PARAM_MAX];
	int64_t                 seconds = 0;
	int                     r;

	spec->params.gc = c->takes_gc && switch_read(query, "gc", false);
	spec->params.own = !c->takes_own || switch_read(query, "own", true);
	if (param_get(query, "seconds", value, sizeof(value)) && *value) {
		if (param_int(value, &seconds) || seconds <= 0)
			return refuse(why, "invalid value for \"seconds\" - must be a positive integer");
		if (c->no_delta)
			return refuse(why, "\"seconds\" parameter is not supported for this profile type");
		spec->delta = true;
	}
	r = format_read(query, spec, why);
	if (r)
		return r;
	if (spec->delta && spec->format->debug)
		return refuse(why, "seconds and debug params are incompatible");
	spec->params.each = format_takes(spec->format) == PRODUCT_DUMP;
	return seconds_set((double)seconds, max_seconds, spec, why);
}

int
spec_read(const struct collector *c, const char *name, const char *query, int64_t max_seconds, struct job_spec *ret,
	char why[SPEC_WHY_BYTES])
{
	*ret = (struct job_spec){ .run = collect_run, .collector = c, .name = name };
	return collector_is_windowed(c) ? window_read(query, max_seconds, ret, why) :
					  snapshot_read(query, max_seconds, ret, why);
}
