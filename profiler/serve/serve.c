/*
 * serve.c - one server's life: bind, say so, answer, end.
 *
 * Everything that can fail because of what a person wrote comes before the first
 * thread: options, token, addresses.  The end goes the other way round: listeners,
 * then windows (early, each with a valid profile), then jobs whose client does not
 * read, then the server's thread, then memory.
 *
 * Tests: tests/serve/start_stop.t.
 */
#include <config.h>

#include "serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "address.h"
#include "clock.h"
#include "expected_library.h"
#include "job.h"
#include "listen.h"
#include "options.h"
#include "own_fd.h"
#include "port_file.h"
#include "profiler.h"
#include "routes.h"

#define GRACE_MS      5000 /* for open requests when the server stops */
#define STOP_FLUSH_MS 1000 /* for the last bytes of replies that are complete */

/* zlib's; only its address is taken, so its type does not matter. */
extern void deflate(void);

void
serve_log(const struct serve *s, enum component_log_level level, const char *message,
	const struct component_log_field *fields, size_t count)
{
	if (s->options.log)
		s->options.log(s->options.log_arg, level, message, fields, count);
}

int
serve_address_bind(const char *text, struct listen_set *ret, struct component_error *err)
{
	struct address a;
	char           why[256] = "";
	int            r;

	if (!*text)
		return 0;
	r = address_parse(text, &a, why, sizeof(why));
	if (r) {
		component_error_set(err, "'%s': %s", text, why);
		return r;
	}
	if (a.kind == ADDRESS_OFF)
		return 0;
	return listen_open(&a, ret, err);
}

bool
serve_addresses_clash(const char *from, const char *to)
{
	struct address a, b;

	return *from && *to && !address_parse(from, &a, NULL, 0) && !address_parse(to, &b, NULL, 0) &&
	       address_clashes(&a, &b);
}

void
serve_tcp_address(const struct component_profiler_options *o, char buf[SERVE_ADDRESS_SIZE])
{
	snprintf(buf, SERVE_ADDRESS_SIZE, "%s", o->address && *o->address ? o->address : "127.0.0.1:6060");
}

void
serve_debug_address(const struct component_profiler_options *o, char buf[SERVE_ADDRESS_SIZE])
{
	bool given = o->debug_socket_path && *o->debug_socket_path;

	snprintf(buf, SERVE_ADDRESS_SIZE, "%s%s", given ? "unix:" : "", given ? o->debug_socket_path : "");
}

void
serve_bind_explain(const struct component_profiler_options *o, enum profiler_fault fault, const struct component_error *why,
	struct component_error *err)
{
	const char *how_named = fault == PROFILER_FAULT_DEBUG_SOCKET ? "option '--debug-socket-path'" : o->how_named;

	component_error_set(err, "cannot serve profiles on %s%s%s", why->text, how_named ? ", given by " : "",
		how_named ? how_named : "");
}

int
serve_somewhere(const struct component_profiler_options *o, struct component_error *why)
{
	struct address a;
	char           text[SERVE_ADDRESS_SIZE];

	serve_debug_address(o, text);
	if (*text || profiler_mounts() > 0)
		return 0;
	serve_tcp_address(o, text);
	if (address_parse(text, &a, NULL, 0) || a.kind != ADDRESS_OFF)
		return 0; /* what is no address is told when it is bound */
	component_error_set(why, "nothing: neither an address nor a debug socket is given");
	return -EINVAL;
}

static int
bind_all(struct serve *s, enum profiler_fault *ret_fault, struct component_error *err)
{
	const struct component_profiler_options *o = &s->options;
	struct component_error why = COMPONENT_ERROR_INIT;
	char                   text[SERVE_ADDRESS_SIZE];
	enum profiler_fault    fault = PROFILER_FAULT_ADDRESS;
	int                    r;

	serve_tcp_address(o, text);
	r = serve_somewhere(o, &why);
	if (!r)
		r = serve_address_bind(text, &s->tcp.set, &why);
	if (!r) {
		serve_debug_address(o, text);
		fault = PROFILER_FAULT_DEBUG_SOCKET;
		r = serve_address_bind(text, &s->debug.set, &why);
		if (r)
			serve_place_close(&s->tcp);
	}
	if (r) {
		serve_bind_explain(o, fault, &why, err);
		*ret_fault = fault;
	}
	return r;
}

static int
zlib_check(struct component_error *err)
{
	static const char *const library[] = { "libz.", "libz-", NULL };

	return expected_library_check((const void *)(uintptr_t)deflate, "deflate", library, err);
}

static void
warn(const struct serve *s, const char *message, const char *key, const char *value)
{
	struct component_log_field field = { key, value };

	serve_log(s, COMPONENT_LOG_WARNING, message, &field, 1);
}

/* One line, after the bind, with the real address. */
void
serve_announce(const struct serve *s)
{
	const struct listen_set    *tcp = &s->tcp.now, *debug = &s->debug.now;
	const struct listen_socket *first = tcp->count ? &tcp->sockets[0] : &debug->sockets[0];
	struct component_log_field  field = { "url", s->url };
	char                        message[400];
	bool                        open = false;

	if (tcp->count + debug->count == 0) {
		serve_log(s, COMPONENT_LOG_INFO, "serving profiles on the program's own HTTP server alone", NULL, 0);
		return;
	}
	if (first->is_unix)
		snprintf(message, sizeof(message), "starting profiling server on %s", first->address);
	else
		snprintf(message, sizeof(message), "starting profiling server on port %u", first->port);
	serve_log(s, COMPONENT_LOG_INFO, message, &field, 1);
	if (tcp->count && debug->count) {
		field = (struct component_log_field){ "address", debug->sockets[0].address };
		serve_log(s, COMPONENT_LOG_INFO, "serving profiles on the debug socket", &field, 1);
	}
	if (*tcp->note)
		warn(s, tcp->note, "address", first->address);
	for (size_t i = 0; i < tcp->count; i++)
		open = open || (!tcp->sockets[i].loopback && !tcp->sockets[i].is_unix);
	if (open && s->auth.token_size == 0)
		warn(s, "profiles can be read by everybody who reaches this address; "
			"use a loopback address or --profiling-token-file", "address", tcp->sockets[0].address);
}

static struct serve *
serve_new(void)
{
	struct serve      *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;

	if (!s)
		return NULL;
	auth_init(&s->auth);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->idle, &attr);
	pthread_condattr_destroy(&attr);
	return s;
}

/* Jobs are left only when the program has closed our descriptors: their threads end,
 * but nobody can collect them, and they keep what they use. */
void
serve_free(struct serve *s)
{
	if (s->job_count > 0)
		return;
	options_release(&s->options);
	auth_release(&s->auth);
	pthread_cond_destroy(&s->idle);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void
serve_name(struct serve *s)
{
	const struct listen_set *set = s->tcp.now.count ? &s->tcp.now : &s->debug.now;

	*s->url = *s->address = '\0';
	if (set->count == 0)
		return;
	snprintf(s->url, sizeof(s->url), "%s%s", set->sockets[0].url, SERVE_PATH);
	snprintf(s->address, sizeof(s->address), "%s", set->sockets[0].address);
}

/* All that can fail because of what a person wrote; no thread yet. */
int
serve_bind(const struct component_profiler_options *o, struct serve **ret, enum profiler_fault *ret_fault, struct component_error *err)
{
	struct serve *s = serve_new();
	char          warning[256];
	int           r = -ENOMEM;

	if (!s)
		return r;
	r = options_copy(&s->options, o, err);
	if (r)
		goto out;
	r = zlib_check(err);
	if (r)
		goto out;
	r = auth_token_read(&s->auth, s->options.token_file, warning, sizeof(warning), err);
	if (r)
		goto out;
	if (*warning)
		warn(s, warning, "file", s->options.token_file);
	r = bind_all(s, ret_fault, err);
	if (r)
		goto out;
	s->tcp.now = s->tcp.set;
	s->debug.now = s->debug.set;
	serve_name(s);
	*ret = s;
	s = NULL;
out:
	if (s)
		serve_free(s);
	return r;
}

unsigned
serve_requests(const struct component_profiler_options *o)
{
	int64_t n = __atomic_load_n(&o->max_requests, __ATOMIC_RELAXED);

	return n < HTTPD_REQUESTS_MAX ? (unsigned)n : HTTPD_REQUESTS_MAX;
}

int
serve_place_open(struct serve *s, struct serve_place *p)
{
	struct listen_set set = p->set;
	int               r;

	p->tag = ++s->last_tag << 1 | (p == &s->debug);
	r = set.count ? httpd_listen(s->httpd, &p->set, (void *)p->tag) : 0;
	if (!r) {
		p->now = set;
		p->lost = false;
	}
	return r;
}

void
serve_place_close(struct serve_place *p)
{
	struct listen_set set;
	sigset_t          mask;

	own_fd_hold(&mask); /* a child must not close another's by its number, see serve_forked() */
	set = p->set;
	p->set.count = 0;
	listen_close(&set);
	own_fd_release(&mask);
}

int
serve_open(struct serve *s, struct component_error *err)
{
	struct httpd_options o = {
		.thread_name = "component-http",
		.on_request = routes_on_request,
		.body_max = routes_body_max,
		.requests = serve_requests(&s->options),
		.arg = s,
		.log = s->options.log,
		.log_arg = s->options.log_arg,
	};
	struct httpd *h;
	int           r;

	r = httpd_start(&o, &h, err);
	if (r)
		return r;
	s->httpd = h;
	if (s->options.port_file && *s->options.port_file && *s->address) {
		r = port_file_write(s->options.port_file, s->address, err);
		if (r)
			return r;
		s->port_file_written = true;
	}
	r = serve_place_open(s, &s->tcp);
	if (!r)
		r = serve_place_open(s, &s->debug);
	if (r) {
		component_error_set(err, "cannot serve profiles: %s", strerror(-r));
		return r;
	}
	serve_announce(s);
	return 0;
}

/* True when all jobs have ended in time; ms: -1 for ever. */
static bool
jobs_wait(struct serve *s, int64_t ms)
{
	struct timespec until = clock_timespec(clock_ns(CLOCK_MONOTONIC) + ms * 1000000);
	int             r = 0;
	bool            ended;

	pthread_mutex_lock(&s->lock);
	while (s->job_count > 0 && r != ETIMEDOUT)
		r = ms < 0 ? pthread_cond_wait(&s->idle, &s->lock) : pthread_cond_timedwait(&s->idle, &s->lock, &until);
	ended = s->job_count == 0;
	pthread_mutex_unlock(&s->lock);
	return ended;
}

void
serve_stop(struct serve *s)
{
	bool lost;

	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_mutex_unlock(&s->lock);
	lost = s->httpd && httpd_unlisten(s->httpd, NULL) == -EBADF;
	job_end_all(s, lost);
	if (!lost && !jobs_wait(s, GRACE_MS)) {
		job_end_all(s, true);
		jobs_wait(s, -1);
	}
	httpd_stop_at(&s->httpd, STOP_FLUSH_MS);
	serve_place_close(&s->tcp);
	serve_place_close(&s->debug);
	if (s->port_file_written)
		port_file_remove(s->options.port_file, s->address);
}

static void
listen_forked(struct listen_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		close(set->sockets[i].fd); /* not listen_close(): the socket's file is the parent's */
	set->count = 0;
}

void
serve_forked(struct serve *s)
{
	httpd_forked(s->httpd);
	listen_forked(&s->tcp.set);
	listen_forked(&s->debug.set);
}
