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

const struct kind *
spec_kind(const char *name)
{
	const struct kind *kind = kind_find(name);

	if (!kind)
		kind = threads_kind(name);
	if (!kind)
		kind = wall_kind(name);
	if (!kind)
		kind = custom_find(name);
	return kind;
}

bool
spec_is_job(const struct kind *kind)
{
	return kind->windowed || kind->snapshot || kind->custom_snapshot;
}

static int
refuse(char *why, const char *text)
{
	snprintf(why, SPEC_WHY_BYTES, "%s", text);
	return -EINVAL;
}

/* Everything but ?format= and debug= is the same for all kinds. */
static int
format_get(const char *query, struct job_spec *spec, char *why)
{
	char    value[PARAM_MAX];
	int64_t debug;

	if (param_get(query, "format", value, sizeof(value)) && *value && strcmp(value, "pprof") != 0) {
		if (!strcmp(value, "top"))
			spec->format = JOB_TOP;
		else if (!strcmp(value, "folded"))
			spec->format = JOB_FOLDED;
		else
			return refuse(why, "unknown \"format\"; write format=top or format=folded, or leave it out");
		return 0;
	}
	param_get(query, "debug", value, sizeof(value));
	param_int(value, &debug);
	if (debug != 0 && !spec->kind->windowed)
		spec->format = debug >= 2 && threads_is_kind(spec->kind) ? JOB_PANIC : JOB_TEXT;
	return 0;
}

int
spec_seconds(double seconds, int64_t max_seconds, struct job_spec *spec, char why[SPEC_WHY_BYTES])
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

static int
window_read(const char *query, int64_t max_seconds, struct job_spec *spec, char *why)
{
	char    value[PARAM_MAX];
	int64_t seconds;
	bool    asked;
	int     r;

	spec->run = wall_is_kind(spec->kind) ? wall_run : window_run;
	param_get(query, "seconds", value, sizeof(value));
	r = param_int(value, &seconds);
	asked = seconds > 0;
	if (r || !asked)
		seconds = SERVE_SECONDS_DEFAULT;
	if (!asked && seconds > max_seconds)
		seconds = max_seconds;
	r = spec_seconds((double)seconds, max_seconds, spec, why);
	return r ? r : format_get(query, spec, why);
}

static int
snapshot_read(const char *query, int64_t max_seconds, struct job_spec *spec, char *why)
{
	char    value[PARAM_MAX];
	int64_t gc, own, seconds = 0;
	int     r;

	spec->run = snapshot_run;
	if (param_get(query, "gc", value, sizeof(value)) && !param_int(value, &gc) && !strcmp(spec->kind->name, "heap"))
		spec->gc = gc > 0;
	if (threads_is_kind(spec->kind)) {
		spec->run = threads_run;
		spec->without_own = param_get(query, "own", value, sizeof(value)) && !param_int(value, &own) && own == 0;
	}
	if (param_get(query, "seconds", value, sizeof(value)) && *value) {
		if (param_int(value, &seconds) || seconds <= 0)
			return refuse(why, "invalid value for \"seconds\" - must be a positive integer");
		if (spec->kind->custom_snapshot)
			return refuse(why, "\"seconds\" parameter is not supported for this profile type");
		spec->run = delta_run;
	}
	r = format_get(query, spec, why);
	if (r)
		return r;
	if (spec->run == delta_run && (spec->format == JOB_TEXT || spec->format == JOB_PANIC))
		return refuse(why, "seconds and debug params are incompatible");
	return spec_seconds((double)seconds, max_seconds, spec, why);
}

int
spec_read(const struct kind *kind, const char *query, int64_t max_seconds, struct job_spec *ret,
	char why[SPEC_WHY_BYTES])
{
	*ret = (struct job_spec){ .kind = kind };
	if (trace_is_kind(kind))
		return trace_spec_read(query, max_seconds, ret, why);
	return kind->windowed ? window_read(query, max_seconds, ret, why) : snapshot_read(query, max_seconds, ret, why);
}
