/*
 * window.c - a CPU profile over a time, a snapshot of now, and the difference of
 * two snapshots: all on a job's thread, which is why a window is plain code that
 * opens, waits and closes.  What windows have in common is here for wall.c and trace.c.
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
	r = job_wait(j);
	if (!r)
		r = snapshot_take(j, &p);
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

int
window_wait(struct job *j, int r, const char *what, const char *why)
{
	char text[256];

	if (!r)
		return job_wait(j);
	snprintf(text, sizeof(text), "Could not enable %s: %s", what, *why ? why : strerror(-r));
	job_fail(j, 500, text);
	return r;
}

void
window_log(struct job *j, const char *message, int64_t duration_ns, const char *what, int64_t count, uint64_t lost_count)
{
	char                       seconds[32], bytes[32], counted[32], lost[32];
	struct component_log_field fields[] = {
		{ "peer", job_peer(j) }, { "kind", job_spec(j)->kind->name }, { "seconds", seconds },
		{ "bytes", bytes }, { what, counted }, { "lost", lost },
	};

	snprintf(seconds, sizeof(seconds), "%.1f", (double)duration_ns / 1e9);
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)job_bytes(j));
	snprintf(counted, sizeof(counted), "%lld", (long long)count);
	snprintf(lost, sizeof(lost), "%llu", (unsigned long long)lost_count);
	serve_log(job_serve(j), COMPONENT_LOG_INFO, message, fields, sizeof(fields) / sizeof(fields[0]));
}

int
window_finish(struct job *j, struct profile *p)
{
	int64_t count = 0;
	int     r = job_profile_write(j, p);

	for (size_t i = 0; i < p->count; i++)
		count += p->samples[i].values[0];
	window_log(j, "profile finished", p->duration_ns, "samples", count, p->lost);
	profile_release(p);
	return r;
}

int
window_run(struct job *j)
{
	struct cpu_window *window = NULL;
	struct profile     p;
	int                r = cpu_window_open(&window);

	r = window_wait(j, r, "CPU profiling", r ? cpu_status() : "");
	if (r) {
		if (window)
			cpu_window_cancel(window);
		return r;
	}
	r = cpu_window_close(window, &p);
	return r ? r : window_finish(j, &p);
}
