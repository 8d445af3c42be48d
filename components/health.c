/*
 * health.c - the part that answers /healthz, /livez and /readyz.
 *
 *     server's thread                       component's loop
 *     request --> waiting --> post(round) ----> runs the checks
 *                    |                              |
 *     timer, 1 s: "loop failed"      <---- post(results): all that wait are answered
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
 * The profiling address may be the same.  Then this server alone listens there, and hands over
 * to the other one what is no probe, connection and all (profiler_take()).  So a probe is
 * answered before anybody asks for a token or looks at its Host, whatever profiling does, and
 * the listener stays when that goes.  For this, health is used before profiling.
 *
 * Tests: tests/components/health.t, tests/components/shared_listener.t.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <component/component.h>

#include "address.h"
#include "fork.h"
#include "health.h"
#include "httpd.h"
#include "listen.h"
#include "profiler.h"
#include "profiling.h"

#define LOOP_ANSWER_MS 1000 /* probes of Kubernetes give up after 1 s by default */
#define PROFILES       "/debug/"
#define STOP_GRACE_MS  200  /* answers are there or 1 s old; nobody waits for a probe at exit */

struct health {
	struct component *c;
	struct health    *next; /* in the list of all that serve, for fork() */
	const char       *address_text;
	struct httpd     *httpd;
	/* Of the server's thread alone. */
	struct waiting   *waiting;
	bool              round_posted;
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

/* Servers of this process: a child of fork() must close their descriptors. */
static pthread_mutex_t serving_lock = PTHREAD_MUTEX_INITIALIZER;
static struct health  *serving;

static void
on_fork_prepare(void)
{
	pthread_mutex_lock(&serving_lock);
}

static void
on_fork_parent(void)
{
	pthread_mutex_unlock(&serving_lock);
}

static void
on_fork_child(void)
{
	for (struct health *h = serving; h; h = h->next) {
		httpd_forked(h->httpd);
		h->httpd = NULL; /* its thread is not in this process */
	}
	serving = NULL;
	pthread_mutex_unlock(&serving_lock);
}

FORK_SLOT(FORK_HEALTH, on_fork_prepare, on_fork_parent, on_fork_child);

static void
serving_add(struct health *h)
{
	pthread_mutex_lock(&serving_lock);
	h->next = serving;
	serving = h;
	pthread_mutex_unlock(&serving_lock);
}

static void
serving_remove(struct health *h)
{
	pthread_mutex_lock(&serving_lock);
	for (struct health **at = &serving; *at; at = &(*at)->next) {
		if (*at == h) {
			*at = h->next;
			break;
		}
	}
	pthread_mutex_unlock(&serving_lock);
}

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

/* extra: a header besides; its name may be NULL. */
static void
answer_plain(struct answer *a, int status, const char *text, struct answer_header extra)
{
	const struct answer_header headers[] = { { "Content-Type", ANSWER_TEXT }, extra, { NULL, NULL } };

	answer_whole(a, status, headers, text, strlen(text));
}

static void
answer_results(struct answer *to, const struct health_results *results)
{
	static const struct answer_header headers[] = { { "Content-Type", ANSWER_TEXT },
		{ "X-Content-Type-Options", "nosniff" }, { "Cache-Control", "no-cache, no-store" }, { NULL, NULL } };
	struct health_answer a;

	if (health_answer(to->ask.path, to->ask.query, results, &a) < 0) {
		answer_plain(to, 500, "out of memory\n", (struct answer_header){ 0 });
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

	if (!h->httpd)
		return; /* stopped since */
	component_checks_run(c, visit, &h->results);
	log_changes(h);
	httpd_post(h->httpd, on_results, h);
}

/* Perhaps it is for profiling. */
static void
answer_other(const struct health *h, struct answer *a)
{
	int r = profiler_take(h, a);

	if (r == -ENOMEM)
		answer_plain(a, 500, "out of memory\n", (struct answer_header){ 0 });
	else if (r == -EAGAIN)
		answer_plain(a, 503, "too many requests at once; try again\n", (struct answer_header){ "Retry-After", "1" });
	else if (r < 0)
		answer_plain(a, 404, strncmp(a->ask.path, PROFILES, strlen(PROFILES)) != 0 ?
			"404 page not found; there are /healthz, /livez and /readyz\n" :
			"404 page not found; profiling is off or has another address; there are /healthz, /livez and /readyz\n",
			(struct answer_header){ 0 });
}

static size_t
on_body(const struct ask *ask, void *arg)
{
	return health_path_known(ask->path) ? 0 : profiler_body_max(arg, ask);
}

static void
on_request(struct answer *a, void *arg)
{
	struct health  *h = arg;
	struct waiting *w;

	if (!health_path_known(a->ask.path)) {
		answer_other(h, a);
		return;
	}
	if (a->ask.method != ASK_GET && a->ask.method != ASK_HEAD) {
		answer_plain(a, 405, "method not allowed\n", (struct answer_header){ "Allow", "GET, HEAD" });
		return;
	}
	w = calloc(1, sizeof(*w));
	if (w) {
		w->h = h;
		w->answer = a;
		w->timer = httpd_timer_start(h->httpd, LOOP_ANSWER_MS, on_timeout, w);
	}
	if (!w || !w->timer) {
		free(w);
		answer_plain(a, 500, "out of memory\n", (struct answer_header){ 0 });
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

static int
check_addresses(struct component_flags *f, void *arg, struct component_error *err)
{
	struct health *h = arg;
	struct address mine, theirs;
	char           text[ADDRESS_HOST_MAX + 64];

	if (address_parse(h->address_text, &mine, NULL, 0) < 0 || !profiling_address(h->c, text, sizeof(text)) ||
	    address_parse(text, &theirs, NULL, 0) < 0 || address_is_same(&mine, &theirs) || !address_clashes(&mine, &theirs))
		return 0;
	return component_flags_fault(f, "health-probe-bind-address", err, "a part of that is where profiles are served "
		"(--profiling-bind-address=%s); write the same for both, or another port", text);
}

static void
state_free(void *state)
{
	struct health *h = state;

	if (!h)
		return;
	health_results_clear(&h->results);
	free(h->failing);
	free(h);
}

static int
part_init(struct component *c, void **ret_state, struct component_error *err)
{
	struct health *h = calloc(1, sizeof(*h));
	int            r;

	if (!h)
		return -ENOMEM;
	h->c = c;
	h->address_text = "0";
	const struct component_flag rows[] = {
		COMPONENT_FLAG_ADDRESS("health-probe-bind-address", &h->address_text,
			"Where to serve /healthz, /livez and /readyz; 0 is off.", .section = "Serving"),
		COMPONENT_FLAG_END
	};
	r = component_flags_add(component_flags(c), rows, err);
	if (r == 0)
		r = component_flags_add_check(component_flags(c), check_addresses, h);
	if (r < 0)
		state_free(h);
	else
		*ret_state = h;
	return r;
}

static int
start_server(struct health *h, const struct address *a, struct component_error *err)
{
	struct httpd_options o = {
		.thread_name = "component-probe",
		.on_request = on_request,
		.body_max = on_body,
		.arg = h,
		.log = component_log_write,
		.log_arg = h->c,
	};
	struct component_error why = COMPONENT_ERROR_INIT;
	struct listen_set      set, told;
	int                    r;

	r = listen_open(a, &set, &why);
	if (r < 0) {
		component_error_set(err, "cannot serve health on %s (set --health-probe-bind-address, use port 0 for any "
			"free port, or 0 to turn it off%s)", why.text,
			r == -EADDRINUSE && component_profiler_running() ? "; to serve profiles there, too, the program "
			"uses the part component_health() before component_profiling()" : "");
		return r;
	}
	if (*set.note)
		component_log(h->c, COMPONENT_LOG_WARNING, set.note, NULL);
	told = set;
	r = httpd_start(&o, &h->httpd, err);
	if (r == 0) {
		r = profiler_host(h, a, &told);
		if (r == 0)
			r = httpd_listen(h->httpd, &set, NULL);
		if (r < 0) {
			profiler_host_end(h);
			httpd_stop(h->httpd, 0);
			h->httpd = NULL;
		}
	}
	if (r < 0) {
		listen_close(&set);
		return r;
	}
	serving_add(h);
	component_log(h->c, COMPONENT_LOG_INFO, "serving health", "url", told.sockets[0].url, NULL);
	return 0;
}

static int
part_start(struct component *c, void *state, struct component_error *err)
{
	struct health *h = state;
	struct address a;

	(void)c;
	if (address_parse(h->address_text, &a, NULL, 0) < 0 || a.kind == ADDRESS_OFF)
		return 0;
	return start_server(h, &a, err);
}

static void
part_stop(struct component *c, void *state)
{
	struct health *h = state;

	(void)c;
	if (!h->httpd)
		return;
	profiler_host_end(h);
	serving_remove(h);
	httpd_stop(h->httpd, STOP_GRACE_MS);
	h->httpd = NULL;
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
