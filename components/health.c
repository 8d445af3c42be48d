/*
 * health.c - the part that answers /healthz, /livez and /readyz.
 *
 *     server's thread                       component's loop
 *     request --> waiting --> post(round) ----> runs the checks
 *                    |                              |
 *     timer, 0.9 s: "loop failed"    <---- post(results): all that wait are answered
 *
 * The checks look at the daemon's own state, so they run on its loop; the server
 * has a thread of its own, so that a loop that hangs is told and not joined.  One
 * round is under way at a time and answers everybody who waits: probes that come
 * every second while the loop hangs for an hour leave one posted function, not
 * 3600.
 *
 * What a stranger would get wrong: live and ready differ.  /livez and /healthz ask
 * whether the loop turns, for a supervisor that restarts what does not; /readyz
 * runs the checks too, and fails from the moment a stop was asked for, when a
 * restart is the last thing wanted.
 *
 * The server is front.c's, which may share it with metrics and profiling.
 *
 * Tests: tests/components/health.t.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <component/component.h>

#include "front.h"
#include "health.h"

#define LOOP_ANSWER_MS 900 /* probes of Kubernetes give up after 1 s by default, and then show no reason */

struct health {
	struct component *c;
	const char       *address_text;
	struct front_page page;
	struct front     *front;   /* NULL: not asked for; set before anybody can ask */
	bool              stopped; /* on the loop: front has gone */
	/* Of the server's thread alone. */
	struct waiting   *waiting;
	bool              round_posted;
	struct httpd_posted posting; /* of the round's results: one round at a time */
	/* Of whoever runs the round; handed over by component_post() and httpd_post(). */
	struct health_results results;
	char             *failing; /* on the loop: what failed last time, to log changes only */
};

/* A request until its answer. */
struct waiting {
	struct health        *h;
	struct answer        *answer;
	struct httpd_timer   *timer;
	struct waiting       *next;
};

/* Out of the list and freed; what it waited with is the caller's from now on. */
static struct answer *
waiting_end(struct waiting *w)
{
	struct answer   *answer = w->answer;
	struct waiting **at;

	for (at = &w->h->waiting; *at != w; at = &(*at)->next)
		;
	*at = w->next;
	free(w);
	return answer;
}

static void
answer_results(struct answer *to, const struct health_results *results)
{
	static const struct answer_header headers[] = { { "Content-Type", ANSWER_TEXT },
		{ "X-Content-Type-Options", "nosniff" }, { "Cache-Control", "no-cache, no-store" }, { NULL, NULL } };
	struct health_answer a;

	if (health_answer(to->ask.path, to->ask.query, results, &a) < 0) {
		front_answer_plain(to, 500, "out of memory\n", (struct answer_header){ 0 });
		return;
	}
	answer_whole(to, a.status, headers, a.body, a.size);
	free(a.body);
}

/* The loop did not answer in time. */
static void
on_timeout(void *arg)
{
	struct health_results stuck = { .stuck = true };

	answer_results(waiting_end(arg), &stuck);
}

/* The client went, or the server stops. */
static void
on_gone(void *arg)
{
	struct waiting *w = arg;
	struct answer  *a;

	httpd_timer_stop(w->timer);
	a = waiting_end(w);
	a->sink->abort(a);
}

/* On the server's thread: the results are there. */
static void
on_results(void *arg)
{
	struct health *h = arg;

	h->round_posted = false;
	while (h->waiting) {
		httpd_timer_stop(h->waiting->timer);
		answer_results(waiting_end(h->waiting), &h->results);
	}
	health_results_clear(&h->results);
}

static void
visit(void *arg, const char *name, int status, const char *text)
{
	health_results_add(arg, name, status, text);
}

/* Reasons are withheld from clients; they are for the log, once a change. */
static void
log_changes(struct health *h)
{
	char *failing = health_results_failing(&h->results);

	if (failing && strcmp(failing, h->failing ? h->failing : "") != 0) {
		if (*failing)
			component_log(h->c, COMPONENT_LOG_WARNING, "not ready", "failing", failing, NULL);
		else
			component_log(h->c, COMPONENT_LOG_INFO, "ready again", NULL);
	}
	if (failing) {
		free(h->failing);
		h->failing = failing;
	}
}

/* On the loop. */
static void
run_round(struct component *c, void *arg)
{
	struct health *h = arg;

	if (h->stopped || !front_httpd(h->front))
		return;
	component_checks_run(c, visit, &h->results);
	log_changes(h);
	httpd_post_at(front_httpd(h->front), &h->posting, on_results, h);
}

static void
on_request(struct answer *a, void *arg)
{
	struct health  *h = arg;
	struct waiting *w;

	w = calloc(1, sizeof(*w));
	if (w) {
		w->h = h;
		w->answer = a;
		w->timer = httpd_timer_start(front_httpd(h->front), LOOP_ANSWER_MS, on_timeout, w);
	}
	if (!w || !w->timer) {
		free(w);
		front_answer_plain(a, 500, "out of memory\n", (struct answer_header){ 0 });
		return;
	}
	w->next = h->waiting;
	h->waiting = w;
	a->on_gone = on_gone;
	a->arg = w;
	/* Should posting fail, the timer answers that the loop did not. */
	if (!h->round_posted && component_post(h->c, run_round, h) == 0)
		h->round_posted = true;
}

static void
state_free(void *state)
{
	struct health *h = state;

	if (!h)
		return;
	front_page_remove(&h->page);
	health_results_clear(&h->results);
	free(h->failing);
	free(h);
}

static int
part_init(struct component *c, void **ret_state, struct component_error *err)
{
	static const char *const paths[] = { "/healthz", "/livez", "/readyz", NULL };
	struct health *h = calloc(1, sizeof(*h));
	int            r;

	if (!h)
		return -ENOMEM;
	h->c = c;
	h->address_text = "0";
	h->page = (struct front_page){ .c = c, .address = &h->address_text, .what = "health", .serving = "serving health",
		.paths = paths, .option = "health-probe-bind-address",
		.has = health_path_known, .answer = on_request, .arg = h };
	const struct component_flag rows[] = {
		COMPONENT_FLAG_ADDRESS("health-probe-bind-address", &h->address_text,
			"Where to serve /healthz, /livez and /readyz; 0 is off.", .section = "Serving"),
		COMPONENT_FLAG_END
	};
	r = component_flags_add(component_flags(c), rows, err);
	if (r == 0)
		r = component_flags_add_check(component_flags(c), front_check, &h->page);
	front_page_add(&h->page);
	if (r < 0)
		state_free(h);
	else
		*ret_state = h;
	return r;
}

static int
part_start(struct component *c, void *state, struct component_error *err)
{
	struct health *h = state;

	(void)c;
	return front_join(&h->page, &h->front, err);
}

static void
part_stop(struct component *c, void *state)
{
	struct health *h = state;

	(void)c;
	h->stopped = true;
	front_leave(h->front, &h->page);
}

const struct component_part *
component_health(void)
{
	static const struct component_part part = {
		.size = sizeof(part),
		.name = "health",
		.init = part_init,
		.start = part_start,
		.stop = part_stop,
		.free = state_free,
		.last_to_stop = true,
	};

	return &part;
}
