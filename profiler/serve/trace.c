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
trace_spec_read(const char *query, int64_t max_seconds, struct job_spec *spec, char *why, size_t why_size)
{
	static const char *const formats[] = { [ENCODE_TRACE_GO119] = "go1.19", [ENCODE_TRACE_GO122] = "go1.22",
		[ENCODE_TRACE_PERFETTO] = "perfetto" };
	char   value[PARAM_MAX];
	double seconds = 0;

	*spec = (struct job_spec){ .run = trace_run, .kind = spec->kind, .trace_format = ENCODE_TRACE_GO119 };
	param_get(query, "seconds", value, sizeof(value));
	if (param_float(value, &seconds) || !(seconds > 0))
		seconds = SECONDS_DEFAULT < max_seconds ? SECONDS_DEFAULT : (double)max_seconds;
	if (seconds > (double)max_seconds) {
		snprintf(why, why_size, "\"seconds\" is above the limit of %lld (--profiling-max-seconds)",
			(long long)max_seconds);
		return -EINVAL;
	}
	spec->wait_ns = (int64_t)(seconds * 1e9);
	if (!param_get(query, "format", value, sizeof(value)) || !*value)
		return 0;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(value, formats[i]) == 0) {
			spec->trace_format = (int)i;
			return 0;
		}
	snprintf(why, why_size, "unknown \"format\" of a trace; write go1.19, go1.22 or perfetto, or leave it out");
	return -EINVAL;
}

static void
trace_log(struct job *j, const struct trace *t)
{
	char                       seconds[32], bytes[32], records[32], lost[32];
	struct component_log_field fields[] = {
		{ "peer", job_peer(j) }, { "kind", "trace" }, { "seconds", seconds }, { "bytes", bytes },
		{ "records", records }, { "lost", lost },
	};

	snprintf(seconds, sizeof(seconds), "%.1f", (double)(t->end_ns - t->start_ns) / 1e9);
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)job_bytes(j));
	snprintf(records, sizeof(records), "%zu", t->count);
	snprintf(lost, sizeof(lost), "%llu", (unsigned long long)t->lost);
	serve_log(job_serve(j), COMPONENT_LOG_INFO, "trace finished", fields, sizeof(fields) / sizeof(fields[0]));
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
	struct tracer_window *window;
	struct trace          t;
	char                  text[128];
	int                   r = tracer_open(&window);

	if (r) {
		snprintf(text, sizeof(text), "Could not enable tracing: %s", strerror(-r));
		job_fail(j, 500, text);
		return r;
	}
	job_wait_ns(j, job_spec(j)->wait_ns);
	if (job_is_gone(j)) {
		tracer_cancel(window);
		return -ECANCELED;
	}
	r = tracer_close(window, &t);
	if (r)
		return r;
	r = trace_write(j, &t);
	trace_log(j, &t);
	trace_release(&t);
	return r;
}
