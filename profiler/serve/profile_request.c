/*
 * profile_request.c - a profile that is asked for: what its parameters mean, and the job that makes it.
 *
 *     "seconds=5&debug=1", or a call's options --> struct profile_request
 *     name, struct profile_request --> struct job_spec, or a sentence for a 400
 *     on the job's thread: a window, a snapshot of now or the difference of two --> its bytes
 *
 * The rules are those of Go's net/http/pprof: "seconds" is looked at before "debug", what
 * cannot be read is 30 s for a window and an error for a delta.  Parameters that nobody knows are
 * ignored as Go does, but for who names a format, which Go does not have: these are told.  Whoever wants
 * a profile without HTTP asks in the same words, so that there is one set of rules.
 *
 * A window is plain code that opens, waits and closes, since it has a thread.  Every request
 * has one of its own; they overlap without knowing of each other.  A hangup (Go does not tell
 * a half-close from a close either) or the end of the server ends the wait early, with a valid
 * profile of what there is.
 *
 * With checkpoint=N its answer begins while it goes on: at least N seconds apart comes what there is so far, as a
 * gzip member that is a whole profile or trace, and the last member is the answer.  So whoever asks has something if the
 * program is killed.  A checkpoint costs what the end of a window does, but for names that are known by then: from the
 * second on they are as far apart as keeps them at 1 % of a processor.  Who reads slowly gets none that would not be out
 * before the end, if it takes as long as the last one.
 *
 * What a stranger would get wrong:
 * - Text of Go has no room for a remark, so how threads were read is a header of the answer,
 *   X-Component-Threads, beside the comment in the binary form.
 * - Go streams a trace while it runs, ours is told whole when it is over, or at checkpoints: the client sees no
 *   difference but that its bytes come at the end.
 *
 * Tests: tests/http/protocol.t, tests/serve/delta.t, tests/serve/profile_write.t, tests/serve/view.t, tests/cpu/windows.t,
 * tests/serve/checkpoint.t, tests/threads/goroutine.t, tests/trace/measured_waits.t, tests/wall/fgprof.t.
 */
#include <config.h>

#include "profile_request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "html.h"
#include "nearest.h"
#include "query.h"
#include "separator.h"
#include "serve.h"
#include "text.h"
#include "viewer.h"

#define PARAM_MAX       256 /* bytes of a value that we know what to do with */
#define FOREVER_SECONDS 9e9 /* in nanoseconds it is more than an int64_t holds */
#define CHECKPOINT_APART 100 /* times the CPU time that one took */

const struct collector *
profile_request_collector(const char *name)
{
	const struct collector *c = collector_find(name);

	return c && format_usual(c->products) ? c : NULL;
}

void
profile_request_near(struct nearest *near)
{
	const struct collector *all[COLLECTORS_ALL_MAX];
	size_t                  n = collector_list(all);

	for (size_t i = 0; i < n; i++) {
		if (!format_usual(all[i]->products))
			continue;
		nearest_try(near, all[i]->name, strlen(all[i]->name));
		if (all[i]->alias)
			nearest_try(near, all[i]->alias, strlen(all[i]->alias));
	}
}

static int
refuse(char *why, const char *text)
{
	snprintf(why, PROFILE_REQUEST_WHY_BYTES, "%s", text);
	return -EINVAL;
}

#define WINDOW_LETTERS  "abcdefghijklmnopqrstuvwxyz0123456789"
#define WINDOW_NAME_MAX (JOB_WINDOW_BYTES - 1)

/* Not for Go's: what it does not know it does not see. */
static const char *const params[] = { "format", "seconds", "debug", "gc", "own", "idle", "token", "focus", "ignore",
	"sample_index", "cum", "n", "window", "checkpoint" };
#define PARAMS (sizeof(params) / sizeof(params[0]))

/* "", or a sentence about a parameter that is none.  Only a plain word is repeated in it. */
static void
param_check(const struct query_pair *pair, char *buf, size_t size)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	char              value[PARAM_MAX];
	struct nearest    near;
	size_t            n;

	*buf = '\0';
	if (!query_value(pair, value, sizeof(value))) {
		snprintf(buf, size, "a parameter cannot be read: write %%3B for ';' and %%25 for '%%'");
		return;
	}
	nearest_begin(&near, pair->name);
	for (size_t i = 0; i < PARAMS; i++) {
		if (!strcmp(pair->name, params[i]))
			return;
		nearest_try(&near, params[i], strlen(params[i]));
	}
	n = (size_t)snprintf(buf, size, "unknown parameter");
	if (!pair->name[strspn(pair->name, plain)])
		n += (size_t)snprintf(buf + n, size - n, " \"%s\"", pair->name);
	if (*near.word) {
		snprintf(buf + n, size - n, "; did you mean \"%s\"?", near.word);
		return;
	}
	n += (size_t)snprintf(buf + n, size - n, "; there are ");
	for (size_t i = 0; i < PARAMS && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", separator(i, PARAMS, " and "), params[i]);
}

static void
view_of_query(const char *query, struct profile_request *ret)
{
	char value[PARAM_MAX];

	ret->viewed |= query_get(query, "focus", ret->focus, sizeof(ret->focus));
	ret->viewed |= query_get(query, "ignore", ret->ignore, sizeof(ret->ignore));
	ret->viewed |= query_get(query, "sample_index", ret->sample_index, sizeof(ret->sample_index));
	if (query_get(query, "cum", value, sizeof(value))) {
		ret->viewed = true;
		ret->cum = !*value || !strcmp(value, "1") || !strcmp(value, "true");
		ret->bad_cum = !ret->cum && strcmp(value, "0") && strcmp(value, "false");
	}
	if (query_get(query, "n", value, sizeof(value))) {
		ret->viewed = true;
		ret->bad_rows = query_int(value, &ret->rows) || ret->rows <= 0;
	}
}

void
profile_request_of_query(const char *query, struct profile_request *ret)
{
	struct query_pair pair;
	char              value[PARAM_MAX];
	int64_t           number;

	*ret = (struct profile_request){ .own = true };
	for (const char *at = query; !*ret->bad && query_next(&at, &pair);)
		param_check(&pair, ret->bad, sizeof(ret->bad));
	query_get(query, "format", ret->format, sizeof(ret->format));
	query_get(query, "debug", value, sizeof(value));
	query_int(value, &ret->debug);
	query_get(query, "gc", value, sizeof(value));
	query_int(value, &number);
	ret->gc = number > 0;
	query_get(query, "own", value, sizeof(value));
	ret->own = query_int(value, &number) || number != 0;
	query_get(query, "idle", value, sizeof(value));
	ret->idle = query_int(value, &number) || number != 0;
	view_of_query(query, ret);
	query_get(query, "window", ret->window, sizeof(ret->window));
	if (query_get(query, "checkpoint", value, sizeof(value)))
		ret->bad_checkpoint = query_int(value, &ret->checkpoint) || ret->checkpoint <= 0;
	query_get(query, "seconds", value, sizeof(value));
	ret->timed = *value;
	ret->bad_seconds = query_float(value, &ret->seconds) != 0;
	ret->bad_whole = query_int(value, &ret->whole) != 0;
}

static int
pattern_take(const char *name, const char *from, char to[PATTERN_BYTES], char *why)
{
	int n = snprintf(why, PROFILE_REQUEST_WHY_BYTES, "\"%s\" ", name);
	int r = pattern_check(from, why + n, PROFILE_REQUEST_WHY_BYTES - (size_t)n);

	if (!r)
		strcpy(to, from);
	return r;
}

/* What of it is shown; for formats that have a view. */
static int
view_read(const struct profile_request *asked, struct job_spec *spec, char *why)
{
	const struct collector *c = spec->collector;
	struct view            *v = &spec->view;
	int                     n, r;

	if (!asked->viewed)
		return 0;
	if (!spec->format->viewed) {
		n = snprintf(why, PROFILE_REQUEST_WHY_BYTES, "focus, ignore, sample_index, cum and n are for ");
		format_viewed(why + n, PROFILE_REQUEST_WHY_BYTES - (size_t)n);
		return -EINVAL;
	}
	r = pattern_take("focus", asked->focus, v->focus, why);
	if (!r)
		r = pattern_take("ignore", asked->ignore, v->ignore, why);
	if (!r && *asked->sample_index) {
		n = snprintf(why, PROFILE_REQUEST_WHY_BYTES, "\"sample_index\" ");
		r = view_type_find(c->types, collector_type_count(c), asked->sample_index, &v->type, why + n,
			PROFILE_REQUEST_WHY_BYTES - (size_t)n);
		v->typed = true;
	}
	if (!r && asked->bad_cum)
		r = refuse(why, "invalid value for \"cum\" - must be 1 or 0");
	if (!r && asked->bad_rows)
		r = refuse(why, "invalid value for \"n\" - must be a positive integer");
	v->cum = asked->cum;
	v->rows = (size_t)asked->rows;
	return r;
}

/* A format by its name, else by debug, which Go has no meaning for where there is a window. */
static int
format_choose(const struct profile_request *asked, struct job_spec *spec, char *why)
{
	const struct collector *c = spec->collector;
	const struct format    *text;
	int                     n;

	spec->format = format_usual(c->products);
	if (*asked->format && *asked->bad)
		return refuse(why, asked->bad);
	if (*asked->format) {
		spec->format = format_find(c->products, asked->format);
		if (spec->format)
			return view_read(asked, spec, why);
		n = snprintf(why, PROFILE_REQUEST_WHY_BYTES, "unknown \"format\"; ");
		format_advice(c->products, why + n, PROFILE_REQUEST_WHY_BYTES - (size_t)n);
		strncat(why, ", or leave it out", PROFILE_REQUEST_WHY_BYTES - strlen(why) - 1);
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
seconds_set(double seconds, int64_t max_seconds, struct job_spec *spec, char *why)
{
	if (seconds > (double)max_seconds) {
		snprintf(why, PROFILE_REQUEST_WHY_BYTES, "\"seconds\" is above the limit of %lld "
			"(--profiling-max-seconds)", (long long)max_seconds);
		return -EINVAL;
	}
	/* Who has set no limit to speak of may be asked for more than a clock can say. */
	spec->wait_ns = seconds < FOREVER_SECONDS ? (int64_t)(seconds * 1e9) : INT64_MAX;
	return 0;
}

/* What cannot be read, or is not above 0, is the usual time. */
static int
window_read(const struct profile_request *asked, int64_t max_seconds, struct job_spec *spec,
	char *why)
{
	bool   fractions = spec->collector->fractions;
	bool   bad = fractions ? asked->bad_seconds : asked->bad_whole;
	double seconds = fractions ? asked->seconds : (double)asked->whole;
	int    r;

	if (!(seconds > 0)) /* nobody has asked for more than is allowed */
		seconds = spec->collector->seconds < max_seconds ? spec->collector->seconds : (double)max_seconds;
	else if (bad)
		seconds = spec->collector->seconds;
	spec->params.idle = !spec->collector->takes_idle || asked->idle;
	r = seconds_set(seconds, max_seconds, spec, why);
	return r ? r : format_choose(asked, spec, why);
}

static int
snapshot_read(const struct profile_request *asked, int64_t max_seconds, struct job_spec *spec,
	char *why)
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
	if (spec->delta && format_takes(spec->format) != PRODUCT_PROFILE) {
		snprintf(why, PROFILE_REQUEST_WHY_BYTES, "\"seconds\" asks for a difference, and format=%s shows one moment; "
			"leave one of the two out", spec->format->name);
		return -EINVAL;
	}
	spec->params.each = format_takes(spec->format) == PRODUCT_DUMP;
	spec->params.text = spec->format->debug == 1;
	return seconds_set((double)asked->whole, max_seconds, spec, why);
}

static int
checkpoint_read(const struct profile_request *asked, struct job_spec *spec, char *why)
{
	if (asked->bad_checkpoint)
		return refuse(why, "invalid value for \"checkpoint\" - must be a positive integer");
	/* A look at threads wakes those that run: once more for each would be felt. */
	if (!asked->checkpoint || spec->collector->products & PRODUCT_DUMP)
		return 0;
	if (!spec->delta && !spec->collector->so_far)
		return refuse(why, "\"checkpoint\" is for what is measured over a time; leave it out, or write \"seconds\" beside it");
	if (!spec->format->binary)
		return refuse(why, "\"checkpoint\" is for the binary form alone; leave format and debug out");
	spec->checkpoint_ns = asked->checkpoint < FOREVER_SECONDS ? asked->checkpoint * CLOCK_NS_PER_S : INT64_MAX;
	return 0;
}

/* ---- on the job's thread ---- */

/* A page for browsers with the product inside. */
static int
write_page(struct job *j, struct product *p, struct symbols *symbols)
{
	const char *path = viewer_file(j->serve);
	struct text page = TEXT_INIT;
	struct html h;
	char        name[64], why[256];
	int         r = html_page_read(path, &page);

	snprintf(name, sizeof(name), "%s%s.pb.gz", j->spec.name, j->spec.delta ? "-delta" : "");
	if (!r)
		r = html_open(&h, page.data, page.size, name, job_write, j);
	if (r < 0 && r != -ECANCELED && !j->bytes) {
		viewer_why(path, r, why, sizeof(why));
		job_fail(j, 501, why);
	}
	if (r >= 0)
		r = format_write(j->spec.format, p, &j->spec.view, symbols, html_write, &h);
	if (r >= 0)
		r = html_close(&h);
	text_release(&page);
	return r;
}

static int
write_product(struct job *j, struct product *p)
{
	struct symbols *symbols = NULL;
	int             r = symbols_open(__atomic_load_n(j->symbol_memory, __ATOMIC_RELAXED), &symbols);

	if (r)
		return r;
	r = j->spec.format->page   ? write_page(j, p, symbols) :
	    j->spec.checkpoint_ns ? format_write_member(j->spec.format, p, &j->spec.view, symbols, job_write, j) :
				     format_write(j->spec.format, p, &j->spec.view, symbols, job_write, j);
	symbols_close(symbols);
	return r;
}

/* Answers why there is none, where the collector has words for it. */
static int
failed(struct job *j, int r)
{
	const struct collector *c = j->spec.collector;
	const char             *why = c->status ? c->status() : "";
	char                    text[256];

	if (!c->cannot)
		return r;
	snprintf(text, sizeof(text), "%s: %s", c->cannot, *why ? why : strerror(-r));
	job_fail(j, 500, text);
	return r;
}

static int
snapshot(struct job *j, struct product *ret)
{
	const struct collector *c = j->spec.collector;
	int                     r;

	*ret->note = '\0';
	r = c->snapshot(c, &j->spec.params, ret);
	return r ? failed(j, r) : 0;
}

/* What has come since before, which is released. */
static int
difference(struct job *j, struct product *before, struct product *ret)
{
	const struct collector *c = j->spec.collector;
	int                     r;

	*ret->note = '\0';
	r = c->snapshot(c, &j->spec.params, ret);
	if (r) {
		product_release(before);
		return r;
	}
	r = profile_subtract(&ret->profile, &before->profile);
	if (r)
		product_release(ret);
	return r;
}

/* What there is so far, of a window or since a snapshot, both of which go on. */
static int
so_far(struct job *j, void *window, const struct product *before, struct product *ret)
{
	struct product copy = { .type = PRODUCT_PROFILE };
	int            r;

	*ret->note = '\0';
	if (window)
		return j->spec.collector->so_far(window, &j->spec.params, ret);
	r = profile_copy(&before->profile, &copy.profile);
	return r ? r : difference(j, &copy, ret);
}

/* One that cannot be made is left out, as the next may be there: while there is no memory, if that is seen before a byte of it
 * is out, or the client has not read the last one.  A window waits for who reads slowly only with one that is larger than what is queued for a client. */
static int
checkpoint(struct job *j, void *window, const struct product *before)
{
	struct product p = { 0 };
	uint64_t       written = j->bytes;
	int            r;

	if (job_is_behind(j) || so_far(j, window, before, &p))
		return 0;
	/* No %f: it follows the daemon's locale. */
	product_comment(&p, "a checkpoint: what was measured in the first %lld ms; the rest did not come",
		(long long)(product_duration_ns(&p) / CLOCK_NS_PER_MS));
	r = write_product(j, &p);
	product_release(&p);
	if (r == -ENOMEM && j->bytes == written)
		return 0;
	return r < 0 ? r : job_flush(j);
}

static int64_t
later(int64_t ns, int64_t by_ns)
{
	return __builtin_add_overflow(ns, by_ns, &ns) ? INT64_MAX : ns;
}

/* Until the window, or the delta from before on, is over or ended early: 0.  -ECANCELED: client gone. */
static int
wait_out(struct job *j, void *window, const struct product *before)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC), end = later(now, j->spec.wait_ns), apart = j->spec.checkpoint_ns, used, took = 0;
	bool    first = true; /* it finds names that the end would have to find, and that are kept */
	int     r;

	for (; apart && later(later(now, apart), took) < end; first = false) {
		r = job_wait(j, now + apart);
		if (r <= 0)
			return r;
		now = clock_ns(CLOCK_MONOTONIC);
		used = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		r = checkpoint(j, window, before);
		if (r < 0)
			return r;
		used = clock_ns(CLOCK_THREAD_CPUTIME_ID) - used;
		apart = first || used * CHECKPOINT_APART < j->spec.checkpoint_ns ? j->spec.checkpoint_ns : used * CHECKPOINT_APART;
		took = clock_ns(CLOCK_MONOTONIC) - now;
		now += took;
	}
	r = job_wait(j, end);
	return r < 0 ? r : 0;
}

/* Nothing is held meanwhile but the first snapshot. */
static int
delta(struct job *j, struct product *ret)
{
	struct product before = { 0 };
	int            r = snapshot(j, &before);

	if (r)
		return r;
	r = wait_out(j, NULL, &before);
	if (r) {
		product_release(&before);
		return r;
	}
	r = difference(j, &before, ret);
	return r ? failed(j, r) : 0;
}

static int
window(struct job *j, struct product *ret)
{
	const struct collector *c = j->spec.collector;
	void                   *w = NULL;
	int                     r = c->open(&w);

	r = r ? failed(j, r) : wait_out(j, w, NULL);
	if (r) {
		if (w)
			c->cancel(w);
		return r;
	}
	*ret->note = '\0';
	return c->close(w, &j->spec.params, ret);
}

static void
log_finished(struct job *j, const struct product *product)
{
	const struct profile      *p = &product->profile;
	const struct trace        *t = &product->trace;
	bool                       traced = product->type == PRODUCT_TRACE;
	int64_t                    count = traced ? (int64_t)t->count : 0;
	uint64_t                   lost_count = traced ? t->lost : p->lost;
	char                       seconds[32], bytes[32], counted[32], lost[32];
	struct component_log_field fields[] = {
		{ "peer", j->peer }, { "kind", j->spec.name }, { "seconds", seconds }, { "bytes", bytes },
		{ traced ? "records" : "samples", counted }, { "lost", lost },
	};

	for (size_t i = 0; !traced && i < p->count; i++)
		count += p->samples[i].values[0];
	snprintf(seconds, sizeof(seconds), "%.1f", (double)product_duration_ns(product) / 1e9);
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)j->bytes);
	snprintf(counted, sizeof(counted), "%lld", (long long)count);
	snprintf(lost, sizeof(lost), "%llu", (unsigned long long)lost_count);
	serve_log(j->serve, COMPONENT_LOG_INFO, traced ? "trace finished" : "profile finished", fields,
		sizeof(fields) / sizeof(fields[0]));
}

static int
run(struct job *j)
{
	bool           windowed = collector_is_windowed(j->spec.collector);
	struct product p = { 0 };
	const char    *why;
	int            r = windowed ? window(j, &p) : j->spec.delta ? delta(j, &p) : snapshot(j, &p);

	if (r)
		return r;
	why = job_ended_by(j);
	if (why)
		product_comment(&p, "%s", why);
	if (!j->bytes) /* it is in the header, which is out with the first checkpoint */
		snprintf(j->note, sizeof(j->note), "%s", p.note);
	r = write_product(j, &p);
	if (windowed && j->serve)
		log_finished(j, &p);
	product_release(&p);
	return r;
}

int
profile_request_job(const struct collector *c, const char *name, const struct profile_request *asked,
	int64_t max_seconds, struct job_spec *ret, char why[PROFILE_REQUEST_WHY_BYTES])
{
	int r;

	*ret = (struct job_spec){ .run = run, .collector = c, .name = name };
	if (strlen(asked->window) > WINDOW_NAME_MAX || asked->window[strspn(asked->window, WINDOW_LETTERS)])
		return refuse(why, "\"window\" is no name; write 1 to 32 of a-z and 0-9");
	strcpy(ret->window, asked->window);
	r = collector_is_windowed(c) ? window_read(asked, max_seconds, ret, why) : snapshot_read(asked, max_seconds, ret, why);
	return r ? r : checkpoint_read(asked, ret, why);
}
