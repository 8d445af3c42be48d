/*
 * scrape.c - the part that serves /metrics.
 *
 * The metrics themselves are libcomponent/metrics/'s, which any code counts with whether this part
 * is there or not.  Here they get an address; the server is front.c's, which health and profiling
 * may share.  Without --metrics-bind-address there is none, and nothing is made.
 *
 * What a stranger would get wrong: no token is asked for, as with probes, not even where profiles
 * have one: Prometheus' habit, and what is here are counts.  Who minds gives it a loopback address.
 *
 * Tests: tests/components/metrics.t.
 */
#include <config.h>

#include "scrape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <component/component.h>
#include <component/metrics.h>

#include "accept.h"
#include "exposition.h"
#include "front.h"
#include "reply.h"

#define OPTION "metrics-bind-address"

struct scrape {
	const char       *address_text;
	struct front_page page;
	struct front     *front;
};

static bool
is_metrics(const char *path)
{
	return !strcmp(path, "/metrics");
}

/* Prometheus asks for OpenMetrics first, with a higher quality; a person's curl for nothing. */
static bool
wants_openmetrics(const struct ask *ask)
{
	int open = accept_quality(ask->accept, "application/openmetrics-text");

	return open && open >= accept_quality(ask->accept, "text/plain");
}

static void
on_request(struct answer *a, void *arg)
{
	bool        open = wants_openmetrics(&a->ask);
	struct text out = TEXT_INIT;

	(void)arg;
	exposition_write(&out, open ? EXPOSITION_OPENMETRICS : EXPOSITION_TEXT);
	if (out.failed)
		front_answer_plain(a, 500, "out of memory\n", (struct answer_header){ 0 });
	else
		reply_packed(a, open ? EXPOSITION_OPENMETRICS_TYPE : EXPOSITION_TEXT_TYPE, out.data, out.size);
	text_release(&out);
}

static void
state_free(void *state)
{
	struct scrape *s = state;

	front_page_remove(&s->page);
	free(s);
}

static int
part_init(struct component *c, void **ret_state, struct component_error *err)
{
	static const char *const paths[] = { "/metrics", NULL };
	struct scrape *s = calloc(1, sizeof(*s));
	int            r;

	if (!s)
		return -ENOMEM;
	s->address_text = "0";
	s->page = (struct front_page){ .c = c, .address = &s->address_text, .what = "metrics",
		.serving = "serving metrics", .paths = paths, .option = OPTION, .has = is_metrics, .answer = on_request, .arg = s };
	const struct component_flag rows[] = {
		COMPONENT_FLAG_ADDRESS(OPTION, &s->address_text,
			"Where to serve /metrics for Prometheus; 0 is off. May be the address of health or of profiles.",
			.section = "Serving"),
		COMPONENT_FLAG_END
	};
	r = component_flags_add(component_flags(c), rows, err);
	if (r == 0)
		r = component_flags_add_check(component_flags(c), front_check, &s->page);
	front_page_add(&s->page);
	if (r < 0)
		state_free(s);
	else
		*ret_state = s;
	return r;
}

static void
build_info(const struct component *c)
{
	static const struct component_metric_spec spec = COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_GAUGE,
		.name = "component_build_info", .help = "Always 1; what runs here is in the labels.",
		.labels = { "component", "version", "library_version" });
	struct component_metric *m;

	component_metric_new(&spec, &m, NULL);
	component_gauge_set(component_gauge_of(m, component_name(c), component_spec(c)->version ?
		component_spec(c)->version : "", component_version(), NULL), 1);
}

static int
part_start(struct component *c, void *state, struct component_error *err)
{
	struct scrape *s = state;

	if (front_is_wanted(&s->page)) {
		/* Before it can be asked: the first scrape has them all. */
		build_info(c);
		scrape_process();
		scrape_profiler();
	}
	return front_join(&s->page, &s->front, err);
}

static void
part_stop(struct component *c, void *state)
{
	struct scrape *s = state;

	(void)c;
	front_leave(s->front, &s->page);
}

const struct component_part *
component_metrics(void)
{
	static const struct component_part part = {
		.size = sizeof(part),
		.name = "metrics",
		.init = part_init,
		.start = part_start,
		.stop = part_stop,
		.free = state_free,
		.last_to_stop = true,
	};

	return &part;
}
