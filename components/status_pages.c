/*
 * status_pages.c - /statusz, /flagz, /configz, /version and /debug/flags/v.
 *
 * The paths, the text and the JSON are those of Kubernetes' components: text for people unless
 * Accept asks for JSON by group, version and kind, application/json;g=config.k8s.io;v=v1beta1;as=Statusz.
 * The JSON has what theirs has, and besides where each value of an option came from.
 *
 * They tell of what belongs to the loop, so the loop is asked and given a second; one that hangs
 * is told, as with probes.  What is set holds until the next reload, which reads all sources anew.
 *
 * What a stranger would get wrong: a posted question cannot be taken back.  When the
 * second is over the asker leaves, and the loop finds nobody waiting, before it answers
 * or after; the next asker waits for that to have happened, so that one question is
 * under way at a time and nothing piles up.
 *
 * Tests: tests/components/status_pages.t, tests/components/profiling.t.
 */
#include <config.h>

#include "status_pages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "accept.h"
#include "clock.h"
#include "process_start.h"
#include "reply.h"
#include "utc.h"

#define LOOP_ANSWER_S 1 /* about as long as a probe waits */
#define GROUP         "config.k8s.io"
#define FORM_NEWEST   "v1beta1"

const char *const status_pages_list[] = { "GET, HEAD /statusz", "GET, HEAD /flagz", "GET, HEAD /configz",
	"GET, HEAD /version", "GET, HEAD /debug/options", "GET, HEAD, PUT /debug/flags/v", NULL };

/* A page: what it is as JSON, and who writes it, on the loop. */
struct status_page {
	const char *path;
	const char *kind; /* "Statusz"; NULL: it has one form alone */
	const char *type; /* of that; NULL: text */
	void      (*write)(struct status_pages *p, struct text *out);
};

/* ---- what the pages say; on the loop ---- */

static void
text_head(struct status_pages *p, const char *what, struct text *out)
{
	text_add(out, "\n%s %s\nWarning: this page is for people, and its text may change; programs ask for JSON by Accept.\n\n",
		component_name(p->c), what);
}

static void
json_head(struct status_pages *p, struct text *out)
{
	text_add(out, "{\n  \"kind\": \"%s\",\n  \"apiVersion\": \"%s/%s\",\n  \"metadata\": {\n    \"name\": ", p->page->kind,
		GROUP, p->version);
	text_add_json(out, component_name(p->c));
	text_add(out, "\n  }");
}

static const char *
own_version(const struct component *c)
{
	return component_spec(c)->version ? component_spec(c)->version : "unknown";
}

struct rows {
	struct status_pages *p;
	struct text *out;
	const char  *section; /* the last one's; NULL: there was none */
	bool         json, sources;
	size_t       count;
};

static void
status_row_text(void *arg, const char *section, const char *name, const char *value)
{
	struct rows *r = arg;

	if (!r->section || strcmp(r->section, section))
		text_add(r->out, "\n%s\n", section);
	r->section = section;
	text_add(r->out, "  ");
	text_add_visible(r->out, name, SIZE_MAX);
	text_add(r->out, ": ");
	text_add_visible(r->out, value, SIZE_MAX);
	text_add(r->out, "\n");
}

static void
status_row_json(void *arg, const char *section, const char *name, const char *value)
{
	struct rows *r = arg;

	if (!r->section || strcmp(r->section, section)) {
		text_add(r->out, "%s\n    ", r->section ? "\n    }," : "");
		text_add_json(r->out, section);
		text_add(r->out, ": {");
		r->count = 0;
	}
	r->section = section;
	text_add(r->out, "%s\n      ", r->count++ ? "," : "");
	text_add_json(r->out, name);
	text_add(r->out, ": ");
	text_add_json(r->out, value);
}

static const char *const paths[] = { "/configz", "/debug/flags/v", "/debug/pprof/", "/flagz", "/statusz", "/version" };

/* start_s: 0: not known, as without /proc. */
static void
statusz_text(struct status_pages *p, int64_t start_s, int64_t up_s, struct text *out)
{
	struct rows rows = { .p = p, .out = out };
	struct utc  at;

	text_head(p, "statusz", out);
	if (start_s > 0) {
		utc_from_unix(start_s, &at);
		text_add(out, "Started: %.3s %.3s %2d %02d:%02d:%02d UTC %" PRId64 "\n", utc_days + 3 * at.weekday,
			utc_months + 3 * (at.month - 1), at.day, at.hour, at.minute, at.second, at.year);
		text_add(out, "Up: %" PRId64 " hr %02" PRId64 " min %02" PRId64 " sec\n", up_s / 3600, up_s / 60 % 60, up_s % 60);
	}
	text_add(out, "Binary version: %s\nLibrary version: %s\nPaths:", own_version(p->c), component_version());
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		text_add(out, " %s", paths[i]);
	text_add(out, "\n");
	component_status_run(p->c, status_row_text, &rows);
}

static void
statusz_json(struct status_pages *p, int64_t start_s, int64_t up_s, struct text *out)
{
	struct rows rows = { .p = p, .out = out };
	char        start[UTC_BYTES];

	json_head(p, out);
	utc_text(start_s, start);
	if (start_s > 0)
		text_add(out, ",\n  \"startTime\": \"%s\",\n  \"uptimeSeconds\": %" PRId64, start, up_s);
	text_add(out, ",\n  \"binaryVersion\": ");
	text_add_json(out, own_version(p->c));
	text_add(out, ",\n  \"libraryVersion\": \"%s\",\n  \"paths\": [", component_version());
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		text_add(out, "%s\"%s\"", i ? ", " : "", paths[i]);
	text_add(out, "],\n  \"sections\": {");
	component_status_run(p->c, status_row_json, &rows);
	text_add(out, "%s\n  }\n}\n", rows.section ? "\n    }" : "");
}

static void
statusz(struct status_pages *p, struct text *out)
{
	(p->version ? statusz_json : statusz_text)(p, process_started_ns() / CLOCK_NS_PER_S, process_up_ns() / CLOCK_NS_PER_S, out);
}

/* In the text both, in JSON a pass for each.  What was set since the options were read is none of theirs. */
static void
flag_row(void *arg, const char *name, const char *value, const char *source)
{
	struct rows *r = arg;
	char         now[24];

	if (!strcmp(name, "v") && component_verbosity(r->p->c) != strtoll(value, NULL, 10)) {
		snprintf(now, sizeof(now), "%" PRId64, component_verbosity(r->p->c));
		value = now;
		source = "PUT /debug/flags/v";
	}
	if (r->json) {
		text_add(r->out, "%s\n    ", r->count++ ? "," : "");
		text_add_json(r->out, name);
		text_add(r->out, ": ");
		text_add_json(r->out, r->sources ? source : value);
	} else {
		text_add(r->out, "%s=", name);
		text_add_visible(r->out, value, SIZE_MAX);
		text_add(r->out, "  # ");
		text_add_visible(r->out, source, SIZE_MAX);
		text_add(r->out, "\n");
	}
}

static void
flags_json(struct status_pages *p, const char *name, bool sources, struct text *out)
{
	struct rows rows = { .p = p, .out = out, .json = true, .sources = sources };

	text_add(out, ",\n  \"%s\": {", name);
	if (component_flags_visit(component_flags(p->c), flag_row, &rows) < 0)
		out->failed = true;
	text_add(out, "\n  }");
}

static void
flagz(struct status_pages *p, struct text *out)
{
	struct rows rows = { .p = p, .out = out };

	if (!p->version) {
		text_head(p, "flagz", out);
		if (component_flags_visit(component_flags(p->c), flag_row, &rows) < 0)
			out->failed = true;
		return;
	}
	json_head(p, out);
	flags_json(p, "flags", false, out);
	flags_json(p, "sources", true, out);
	text_add(out, "\n}\n");
}

static void
dump(struct status_pages *p, bool json, struct text *out)
{
	char *text = component_flags_dump(component_flags(p->c), json);

	if (text)
		text_add(out, "%s", text);
	else
		out->failed = true;
	free(text);
}

static void
configz(struct status_pages *p, struct text *out)
{
	text_add(out, "{");
	text_add_json(out, component_name(p->c));
	text_add(out, ": ");
	dump(p, true, out);
	text_add(out, "}\n");
}

static void
options(struct status_pages *p, struct text *out)
{
	dump(p, false, out);
}

/* Kubernetes' members, as far as a C program has them. */
static void
version(struct status_pages *p, struct text *out)
{
	struct utsname host = { .machine = "unknown" };

	uname(&host);
	text_add(out, "{\n  \"gitVersion\": ");
	text_add_json(out, own_version(p->c));
	text_add(out, ",\n  \"libraryVersion\": \"%s\",\n  \"compiler\": \"cc %s\",\n  \"platform\": \"linux/%s\"\n}\n",
		component_version(), __VERSION__, host.machine);
}

static void
verbosity(struct status_pages *p, struct text *out)
{
	if (!p->put)
		text_add(out, "%" PRId64 "\n", component_verbosity(p->c));
	else if (component_set_verbosity(p->c, p->verbosity) == 0)
		text_add(out, "verbosity is %" PRId64 " until the next reload\n", p->verbosity);
}

static const struct status_page pages[] = {
	{ "/statusz", "Statusz", NULL, statusz },
	{ "/flagz", "Flagz", NULL, flagz },
	{ "/configz", NULL, SERVE_JSON, configz },
	{ "/version", NULL, SERVE_JSON, version },
	{ "/debug/options", NULL, NULL, options },
	{ "/debug/flags/v", NULL, NULL, verbosity },
};

/* ---- the question ---- */

void
status_pages_init(struct status_pages *p, struct component *c)
{
	pthread_condattr_t attr;

	p->c = c;
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->changed, &attr);
	pthread_condattr_destroy(&attr);
}

void
status_pages_release(struct status_pages *p)
{
	text_release(&p->answer);
	/* Nothing is behind lock and changed, and in a forked child pthread_cond_destroy() waits for one who waits in the parent. */
}

/* On the loop. */
static void
on_loop(struct component *c, void *arg)
{
	struct status_pages *p = arg;
	struct text          answer = TEXT_INIT;
	bool                 is_wanted;

	(void)c;
	pthread_mutex_lock(&p->lock);
	is_wanted = p->waiting;
	pthread_mutex_unlock(&p->lock);
	/* Not under the lock: a check may hang, and whoever waits must be able to leave.  Nobody asks anything else meanwhile. */
	if (is_wanted)
		p->page->write(p, &answer);
	pthread_mutex_lock(&p->lock);
	p->asked = false;
	if (p->waiting) {
		p->answer = answer;
		p->answered = true;
	} else {
		text_release(&answer);
	}
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

/* Waits under lock; false when the time is over. */
static bool
wait_until(struct status_pages *p, const struct timespec *until)
{
	return pthread_cond_timedwait(&p->changed, &p->lock, until) != ETIMEDOUT;
}

static void
refuse(struct component_profiler_page *page, int status, const char *words)
{
	page->status = status;
	page->text = strdup(words);
}

/* value: what a PUT is to set. */
static void
ask(struct status_pages *p, const struct status_page *what, const char *form, const int64_t *value,
	struct component_profiler_page *page)
{
	struct timespec until = clock_timespec(clock_ns(CLOCK_MONOTONIC) + LOOP_ANSWER_S * CLOCK_NS_PER_S);
	bool            answered = false;

	pthread_mutex_lock(&p->lock);
	while (p->asked || p->waiting)
		if (!wait_until(p, &until))
			goto out;
	if (component_post(p->c, on_loop, p) < 0)
		goto out;
	p->asked = p->waiting = true;
	p->answered = false;
	p->page = what;
	p->version = form;
	p->put = value != NULL;
	p->verbosity = value ? *value : 0;
	while (!p->answered)
		if (!wait_until(p, &until))
			break;
	answered = p->answered;
	if (answered && !p->answer.failed) {
		page->text = p->answer.data;
		p->answer.data = NULL;
	}
	text_release(&p->answer);
	p->answer = (struct text)TEXT_INIT;
	p->waiting = false;
	pthread_cond_broadcast(&p->changed);
out:
	pthread_mutex_unlock(&p->lock);
	if (!answered)
		refuse(page, 503, "the daemon's loop does not answer within 1s");
}

static void
put_verbosity(struct status_pages *p, const struct status_page *what, struct component_profiler_page *page)
{
	const char *body = page->body;
	char       *end;
	int64_t     value;

	errno = 0;
	value = strtoll(body, &end, 10);
	end += strspn(end, "\r\n");
	if (end == body || *end || errno || strspn(body, "-0123456789") == 0 || value < -2 || value > INT32_MAX)
		refuse(page, 400, "verbosity: write a number from -2 (errors alone) up, 0 is the usual one");
	else
		ask(p, what, NULL, &value, page);
}

/* Which version of the JSON a parameter names; NULL: none that there is. */
static const char *
form_of(const struct accept_entry *e, const char *kind)
{
	static const char *const forms[] = { FORM_NEWEST, "v1alpha1" };
	size_t      size;
	const char *value = accept_parameter(e, "g", &size);

	if (value && (size != strlen(GROUP) || strncmp(value, GROUP, size)))
		return NULL;
	value = accept_parameter(e, "as", &size);
	if (value && (size != strlen(kind) || strncmp(value, kind, size)))
		return NULL;
	value = accept_parameter(e, "v", &size);
	if (!value)
		return FORM_NEWEST;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (size == strlen(forms[i]) && !strncmp(value, forms[i], size))
			return forms[i];
	return NULL;
}

static bool
is_text(const struct accept_entry *e)
{
	static const char *const names[] = { "text/plain", "text/*", "*/*", "text/html" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (accept_is(e, names[i]))
			return true;
	return false;
}

/* false: nothing that the client takes.  *ret: NULL is text. */
static bool
choose(const char *accept, const char *kind, const char **ret)
{
	struct accept_entry e;
	int  best = 0;

	*ret = NULL;
	if (!*accept)
		return true;
	while (accept_next(&accept, &e)) {
		bool json = accept_is(&e, "application/json") && form_of(&e, kind);

		if (e.quality > best && (json || is_text(&e))) {
			best = e.quality;
			*ret = json ? form_of(&e, kind) : NULL;
		}
	}
	return best > 0;
}

void
status_pages_answer(void *arg, struct component_profiler_page *page)
{
	const struct status_page *what = pages;
	const char *form = NULL;
	char        why[160];

	while (strcmp(what->path, page->path))
		what++; /* it is in the list */
	if (!strcmp(page->method, "PUT")) {
		put_verbosity(arg, what, page);
	} else if (what->kind && !choose(page->accept, what->kind, &form)) {
		snprintf(why, sizeof(why), "there is text/plain, and application/json;g=%s;v=%s;as=%s", GROUP, FORM_NEWEST, what->kind);
		refuse(page, 406, why);
	} else {
		page->type = form ? SERVE_JSON : what->type;
		ask(arg, what, form, NULL, page);
	}
}
