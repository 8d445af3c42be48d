/*
 * trace.c - trace?seconds=N: what every thread did, for go tool trace and for Perfetto.
 *
 *     seconds   a float, as for Go's; missing, wrong or not above 0: 1
 *     format    go1.19 (the default: every go tool trace from 1.19 on reads it),
 *               go1.22, perfetto
 *
 * What a stranger would get wrong: Go streams a trace while it runs, ours is told whole
 * when it is over: the client sees no difference but that its bytes come at the end.  And
 * two at once are no error; each has its own window.
 *
 * Tests: tests/trace.t.
 */
#include <config.h>

#include "serve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "encode.h"
#include "tracer.h"

#define SECONDS_DEFAULT 1
#define PARAM_MAX       64

bool
trace_is_kind(const struct kind *kind)
{
	return kind->windowed && strcmp(kind->name, "trace") == 0;
}

int
trace_spec_read(const char *query, int64_t max_seconds, struct job_spec *spec, char why[SPEC_WHY_BYTES])
{
	static const char *const formats[] = { [ENCODE_TRACE_GO119] = "go1.19", [ENCODE_TRACE_GO122] = "go1.22",
		[ENCODE_TRACE_PERFETTO] = "perfetto" };
	char   value[PARAM_MAX];
	double seconds = 0;

	*spec = (struct job_spec){ .run = trace_run, .kind = spec->kind, .trace_format = ENCODE_TRACE_GO119 };
	param_get(query, "seconds", value, sizeof(value));
	if (param_float(value, &seconds) || !(seconds > 0))
		seconds = SECONDS_DEFAULT < max_seconds ? SECONDS_DEFAULT : (double)max_seconds;
	if (spec_seconds(seconds, max_seconds, spec, why))
		return -EINVAL;
	if (!param_get(query, "format", value, sizeof(value)) || !*value)
		return 0;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(value, formats[i]) == 0) {
			spec->trace_format = (int)i;
			return 0;
		}
	snprintf(why, SPEC_WHY_BYTES, "unknown \"format\" of a trace; write go1.19, go1.22 or perfetto, or leave it out");
	return -EINVAL;
}

static int
trace_write(struct job *j, const struct trace *t)
{
	struct symbols *symbols = NULL;
	int             r = symbols_open(job_serve(j)->options.symbol_memory_bytes, &symbols);

	if (r)
		return r;
	r = encode_trace(t, (enum encode_trace_format)job_spec(j)->trace_format, symbols, job_write, j);
	symbols_close(symbols);
	return r;
}

int
trace_run(struct job *j)
{
	struct tracer_window *window = NULL;
	struct trace          t;
	int                   r = window_wait(j, tracer_open(&window), "tracing", "");

	if (r) {
		if (window)
			tracer_cancel(window);
		return r;
	}
	r = tracer_close(window, &t);
	if (r)
		return r;
	r = trace_write(j, &t);
	window_log(j, "trace finished", t.end_ns - t.start_ns, "records", (int64_t)t.count, t.lost);
	trace_release(&t);
	return r;
}
