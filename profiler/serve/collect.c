/*
 * collect.c - what a job does for every collector alike: a window, a snapshot of now or the
 * difference of two; then its bytes.  It is on a job's thread, which is why a window is plain
 * code that opens, waits and closes.
 *
 * Every request has a window of its own; they overlap without knowing of each
 * other.  A hangup (Go does not tell a half-close from a close either) or the end
 * of the server ends the wait early, with a valid profile of what there is.
 *
 * What a stranger would get wrong:
 * - Text of Go has no room for a remark, so how threads were read is a header of the answer,
 *   X-Component-Threads, beside the comment in the binary form.
 * - Go streams a trace while it runs, ours is told whole when it is over: the client sees no
 *   difference but that its bytes come at the end.
 *
 * Tests: tests/cpu/windows.t, tests/serve/delta.t, tests/threads/goroutine.t, tests/trace/measured_waits.t, tests/wall/fgprof.t.
 */
#include <config.h>

#include "collect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int
write_product(struct job *j, const struct product *p)
{
	struct symbols *symbols = NULL;
	int             r = symbols_open(job_symbol_memory(j), &symbols);

	if (r)
		return r;
	r = format_write(job_spec(j)->format, p, symbols, job_write, j);
	symbols_close(symbols);
	return r;
}

/* Answers why there is none, where the collector has words for it. */
static int
failed(struct job *j, int r)
{
	const struct collector *c = job_spec(j)->collector;
	const char             *why = c->status ? c->status() : "";
	char                    text[256];

	if (!c->cannot)
		return r;
	snprintf(text, sizeof(text), "%s: %s", c->cannot, *why ? why : strerror(-r));
	job_fail(j, 500, text);
	return r;
}

/* ---- now, and what has been added since ---- */

static int
snapshot(struct job *j, struct product *ret)
{
	const struct job_spec *spec = job_spec(j);
	int                    r;

	*ret->note = '\0';
	r = spec->collector->snapshot(spec->collector, &spec->params, ret);
	return r ? failed(j, r) : 0;
}

/* Nothing is held meanwhile but the first snapshot. */
static int
delta(struct job *j, struct product *ret)
{
	struct product before;
	int            r = snapshot(j, &before);

	if (r)
		return r;
	r = job_wait(j);
	if (!r)
		r = snapshot(j, ret);
	if (r) {
		product_release(&before);
		return r;
	}
	r = profile_subtract(&ret->profile, &before.profile);
	if (r) {
		product_release(ret);
		product_release(&before);
	}
	return r;
}

/* ---- windows ---- */

static int
window(struct job *j, struct product *ret)
{
	const struct collector *c = job_spec(j)->collector;
	void                   *w = NULL;
	int                     r = c->open(&w);

	r = r ? failed(j, r) : job_wait(j);
	if (r) {
		if (w)
			c->cancel(w);
		return r;
	}
	*ret->note = '\0';
	return c->close(w, ret);
}

static void
log_window(struct job *j, const char *message, int64_t duration_ns, const char *what, int64_t count, uint64_t lost_count)
{
	char                       seconds[32], bytes[32], counted[32], lost[32];
	struct component_log_field fields[] = {
		{ "peer", job_peer(j) }, { "kind", job_spec(j)->name }, { "seconds", seconds },
		{ "bytes", bytes }, { what, counted }, { "lost", lost },
	};

	snprintf(seconds, sizeof(seconds), "%.1f", (double)duration_ns / 1e9);
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)job_bytes(j));
	snprintf(counted, sizeof(counted), "%lld", (long long)count);
	snprintf(lost, sizeof(lost), "%llu", (unsigned long long)lost_count);
	job_log(j, message, fields, sizeof(fields) / sizeof(fields[0]));
}

static void
log_finished(struct job *j, const struct product *product)
{
	const struct profile *p = &product->profile;
	const struct trace   *t = &product->trace;
	int64_t               count = 0;

	if (product->type == PRODUCT_TRACE) {
		log_window(j, "trace finished", t->end_ns - t->start_ns, "records", (int64_t)t->count, t->lost);
		return;
	}
	for (size_t i = 0; i < p->count; i++)
		count += p->samples[i].values[0];
	log_window(j, "profile finished", p->duration_ns, "samples", count, p->lost);
}

int
collect_run(struct job *j)
{
	const struct job_spec *spec = job_spec(j);
	bool                   windowed = collector_is_windowed(spec->collector);
	struct product         p;
	int                    r = windowed ? window(j, &p) : spec->delta ? delta(j, &p) : snapshot(j, &p);

	if (r)
		return r;
	job_note(j, p.note);
	r = write_product(j, &p);
	if (windowed)
		log_finished(j, &p);
	product_release(&p);
	return r;
}
