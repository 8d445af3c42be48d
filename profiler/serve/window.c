/*
 * window.c - a CPU profile over a time, a snapshot of now, and the difference of
 * two snapshots: all on a job's thread, which is why a window is plain code that
 * opens, waits and closes.
 *
 * Every request has a window of its own; they overlap without knowing of each
 * other.  A hangup (Go does not tell a half-close from a close either) or the end
 * of the server ends the wait early, with a valid profile of what there is.
 *
 * Tests: tests/serve_profile.t, tests/serve_delta.t.
 */
#include <config.h>

#include "serve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cpu.h"
#include "encode.h"

/* debug=1: Go has three forms, told apart by what is counted. */
static int
text_write(struct job *j, const struct profile *p, struct symbols *symbols)
{
	if (p->type_count == 1)
		return encode_counts_text(p, symbols, job_write, j);
	if (strcmp(p->types[0].type, "contentions") == 0)
		return encode_contention_text(p, symbols, job_write, j);
	return encode_heap_text(p, symbols, job_write, j);
}

int
job_profile_write(struct job *j, const struct profile *p)
{
	const struct job_spec *spec = job_spec(j);
	struct symbols        *symbols = NULL;
	int                    r;

	r = symbols_open(job_serve(j)->options.symbol_memory_bytes, &symbols);
	if (r)
		return r;
	if (spec->format == JOB_TOP)
		r = encode_top(p, symbols, job_write, j);
	else if (spec->format == JOB_FOLDED)
		r = encode_folded(p, symbols, job_write, j);
	else if (spec->format == JOB_TEXT)
		r = text_write(j, p, symbols);
	else
		r = encode_pprof(p, symbols, job_write, j);
	symbols_close(symbols);
	return r;
}

static int
snapshot_take(struct job *j, struct profile *ret)
{
	int r = kind_snapshot(job_spec(j)->kind, ret);

	if (!r && job_spec(j)->gc)
		profile_comment(ret, "gc=1: there is no garbage collector in this process, nothing was collected");
	return r;
}

int
snapshot_run(struct job *j)
{
	struct profile p;
	int            r = snapshot_take(j, &p);

	if (r)
		return r;
	r = job_profile_write(j, &p);
	profile_release(&p);
	return r;
}

/* What has been added in a time.  Nothing is held meanwhile but the first snapshot. */
int
delta_run(struct job *j)
{
	struct profile before, p;
	int            r = kind_snapshot(job_spec(j)->kind, &before);

	if (r)
		return r;
	job_wait(j, job_spec(j)->seconds);
	r = job_is_gone(j) ? -ECANCELED : snapshot_take(j, &p);
	if (r) {
		profile_release(&before);
		return r;
	}
	r = profile_subtract(&p, &before);
	if (!r)
		r = job_profile_write(j, &p);
	profile_release(&p);
	return r;
}

void
job_window_log(struct job *j, const struct profile *p)
{
	char                       seconds[32], bytes[32], samples[32], lost[32];
	int64_t                    count = 0;
	struct component_log_field fields[] = {
		{ "peer", job_peer(j) }, { "kind", job_spec(j)->kind->name }, { "seconds", seconds },
		{ "bytes", bytes }, { "samples", samples }, { "lost", lost },
	};

	for (size_t i = 0; i < p->count; i++)
		count += p->samples[i].values[0];
	snprintf(seconds, sizeof(seconds), "%.1f", (double)p->duration_ns / 1e9);
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)job_bytes(j));
	snprintf(samples, sizeof(samples), "%lld", (long long)count);
	snprintf(lost, sizeof(lost), "%llu", (unsigned long long)p->lost);
	serve_log(job_serve(j), COMPONENT_LOG_INFO, "profile finished", fields, sizeof(fields) / sizeof(fields[0]));
}

int
window_run(struct job *j)
{
	struct cpu_window *window = NULL;
	struct profile     p;
	char               text[256];
	const char        *why;
	int                r;

	r = cpu_window_open(&window);
	if (r) {
		why = cpu_status();
		snprintf(text, sizeof(text), "Could not enable CPU profiling: %s", *why ? why : strerror(-r));
		job_fail(j, 500, text);
		return r;
	}
	job_wait(j, job_spec(j)->seconds);
	if (job_is_gone(j)) {
		cpu_window_cancel(window);
		return -ECANCELED;
	}
	r = cpu_window_close(window, &p);
	if (r)
		return r;
	r = job_profile_write(j, &p);
	job_window_log(j, &p);
	profile_release(&p);
	return r;
}
