/*
 * routes.c - from a request to whoever answers it, by the rules of Go's
 * net/http/pprof and its mux.
 *
 * The order is part of the contract: Host, token, path, method, name, parameters.
 * An unclean path is redirected, a known path with another method is 405 without
 * X-Go-Pprof, a name that is no profile is 404 with it, and "seconds" is looked at
 * before "debug".
 *
 * What a stranger would get wrong: answers of the mux (404 of foreign paths, 405) have
 * no X-Go-Pprof in Go, and clients tell them from our errors by that.  Which door was
 * asked is no matter here: answer.h.
 *
 * A name that is near one of ours is told that one.  Not so where but the case or a slash behind
 * it is wrong: what checks Go's contract asks for these, and finds Go's words.
 *
 * What the parameters of a profile mean is profile_request.c's.
 *
 * Tests: tests/http/protocol.t, tests/serve/auth.t, tests/serve/view.t.
 */
#include <config.h>

#include "routes.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "nearest.h"
#include "profile_request.h"
#include "rates.h"
#include "reply.h"
#include "serve.h"

/* The path without "//", "." and ".."; keeps a final slash.  NULL: no memory. */
static char *
path_clean(const char *path)
{
	char  *out = malloc(strlen(path) + 2);
	size_t n = 0, part;

	if (!out)
		return NULL;
	out[n++] = '/';
	for (const char *p = path; *p; p += part) {
		p += strspn(p, "/");
		part = strcspn(p, "/");
		if (part == 0 || (part == 1 && *p == '.'))
			continue;
		if (part == 2 && p[0] == '.' && p[1] == '.') {
			while (n > 1 && out[--n - 1] != '/')
				;
			continue;
		}
		memcpy(out + n, p, part);
		n += part;
		if (p[part] == '/')
			out[n++] = '/';
	}
	out[n] = '\0';
	return out;
}

/* A path as it may stand in a header and in HTML: all but the plainest escaped. */
static char *
path_escape(const char *path, const char *query)
{
	char  *out = malloc(strlen(path) * 3 + (query ? strlen(query) : 0) + 2);
	size_t n = 0;

	if (!out)
		return NULL;
	for (; *path; path++) {
		if (isalnum((unsigned char)*path) || strchr("/-_.~:@+$", *path))
			out[n++] = *path;
		else
			n += (size_t)sprintf(out + n, "%%%02X", (unsigned char)*path);
	}
	if (query) {
		out[n++] = '?';
		strcpy(out + n, query);
	} else {
		out[n] = '\0';
	}
	return out;
}

/* The query stays in Location, but not in a page: it may hold the token.  What is mounted
 * on another server is asked without what stands before its paths there. */
static void
redirect(struct answer *a, const char *path)
{
	const char *before = a->ask.prefix;
	char       *full = NULL, *location = NULL, *link = NULL, *body = NULL;
	int         n = -1;

	if (asprintf(&full, "%s%s", before, path) < 0)
		full = NULL;
	if (full) {
		location = path_escape(full, a->ask.query);
		link = path_escape(full, NULL);
	}
	if (location && link)
		n = asprintf(&body, "<a href=\"%s\">Moved Permanently</a>.\n\n", link);
	if (n < 0) {
		body = NULL;
		reply_error(a, 500, "out of memory");
		goto out;
	}
	answer_whole(a, 301, (const struct answer_header[]){ { "Content-Type", SERVE_HTML }, { "Location", location },
		{ NULL, NULL } }, body, (size_t)n);
out:
	free(body);
	free(link);
	free(location);
	free(full);
}

static void
reply_wrong_method(struct answer *a, const char *allowed)
{
	static const char text[] = "Method Not Allowed\n";

	reply_with(a, 405, ANSWER_TEXT, text, sizeof(text) - 1, "Allow", allowed);
}

static void
route_collector(struct serve *s, struct answer *a, const struct collector *c, const char *name)
{
	struct profile_request asked;
	struct job_spec        spec;
	char                   why[PROFILE_REQUEST_WHY_BYTES];

	profile_request_of_query(a->ask.query, &asked);
	if (profile_request_job(c, name, &asked, __atomic_load_n(&s->options.max_seconds, __ATOMIC_RELAXED), &spec, why))
		reply_error(a, 400, why);
	else
		job_start(s, a, &spec);
}

#define GETS "GET, HEAD"

static const struct route {
	const char *name; /* behind SERVE_PATH */
	void      (*reply)(struct serve *s, struct answer *a);
	const char *methods;
} routes[] = {
	{ "", index_reply, GETS },
	{ "cmdline", cmdline_reply, GETS },
	{ "rates", rates_reply, GETS ", POST" },
	{ "status", status_reply, GETS },
	{ "stop", stop_reply, "POST" },
	{ "symbol", symbol_reply, GETS ", POST" },
};

/* NULL: it may be a collector's name. */
static const struct route *
route_find(const char *name)
{
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if (!strcmp(name, routes[i].name))
			return &routes[i];
	return NULL;
}

/* Go's words, and behind them what may have been meant. */
static void
reply_unknown(struct answer *a, const char *name)
{
	struct nearest near;
	char           text[sizeof("Unknown profile; did you mean \"\"?") + NEAREST_BYTES] = "Unknown profile";

	nearest_begin(&near, name);
	profile_request_near(&near);
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		nearest_try(&near, routes[i].name, strlen(routes[i].name));
	if (*near.word && !strchr(name, '/') && strcasecmp(name, near.word))
		snprintf(text, sizeof(text), "Unknown profile; did you mean \"%s\"?", near.word);
	reply_error(a, 404, text);
}

static bool
takes(const char *methods, enum ask_method method)
{
	return method != ASK_OTHER && strstr(methods, method == ASK_POST ? "POST" : GETS);
}

static void
route_name(struct serve *s, struct answer *a, const char *name)
{
	enum ask_method         method = a->ask.method;
	const struct route     *route = route_find(name);
	const char             *methods = route ? route->methods : GETS;
	const struct collector *c = route ? NULL : profile_request_collector(name);

	if (!takes(methods, method))
		reply_wrong_method(a, methods);
	else if (route)
		route->reply(s, a);
	else if (c)
		route_collector(s, a, c, !strcmp(name, c->name) ? c->name : c->alias);
	else
		reply_unknown(a, name);
}

/* Of a collector that is asked for at another place as well, or NULL. */
static const char *
name_of_path(const char *path)
{
	for (size_t i = 0; i < collector_count; i++)
		if (collectors[i]->path && !strcmp(path, collectors[i]->path))
			return collectors[i]->name;
	return NULL;
}

bool
routes_has(const char *path)
{
	size_t n = sizeof(SERVE_PATH) - 2; /* without its slash */

	return (!strncmp(path, SERVE_PATH, n) && strchr("/", path[n])) || name_of_path(path);
}

static void
route_path(struct serve *s, struct answer *a)
{
	static const char lost[] = "404 page not found\n";
	const char *path = a->ask.path;
	const char *name;
	char       *clean = path_clean(path);

	if (!clean) {
		reply_error(a, 500, "out of memory");
		return;
	}
	if (strcmp(clean, path) && *path == '/') {
		redirect(a, clean);
	} else if (!strncmp(path, SERVE_PATH, sizeof(SERVE_PATH) - 1)) {
		route_name(s, a, path + sizeof(SERVE_PATH) - 1);
	} else if ((name = name_of_path(path))) {
		route_name(s, a, name);
	} else if (!strncmp(path, SERVE_PATH, sizeof(SERVE_PATH) - 2) && !path[sizeof(SERVE_PATH) - 2]) {
		if (a->ask.method == ASK_GET || a->ask.method == ASK_HEAD)
			redirect(a, SERVE_PATH);
		else
			reply_wrong_method(a, GETS);
	} else if (!page_reply(s, a)) {
		reply_text(a, 404, ANSWER_TEXT, lost, sizeof(lost) - 1);
	}
	free(clean);
}

static bool
host_ok(struct serve *s, const char *host)
{
	bool ok;

	pthread_mutex_lock(&s->auth.lock);
	ok = auth_host_ok(&s->auth, host, s->options.allowed_hosts);
	pthread_mutex_unlock(&s->auth.lock);
	return ok;
}

/* May it be asked at all?  0, or the status of *ret_why. */
static int
refused(struct serve *s, const struct ask *ask, const char **ret_why)
{
	*ret_why = "this Host is not served on a loopback address; if it is yours, name it with --profiling-allowed-host";
	if (ask->loopback && !host_ok(s, ask->host))
		return 403;
	*ret_why = "a token is needed: send 'Authorization: Bearer TOKEN' or append ?token=TOKEN";
	if (!ask->by_mode && !auth_token_ok(&s->auth, ask->authorization, ask->query))
		return 401;
	*ret_why = "a POST or PUT from a page of another origin is refused";
	if (ask->method != ASK_GET && ask->method != ASK_HEAD && !auth_origin_ok(ask->origin, ask->host))
		return 403;
	*ret_why = "profiling is off; 'componentctl enable' switches it on";
	return s->off ? 503 : 0;
}

void
routes_on_request(struct answer *a, void *serve)
{
	struct serve *s = serve;
	const char   *why;
	int           status = refused(s, &a->ask, &why);

	if (status == 401)
		reply_error_with(a, status, why, "WWW-Authenticate", "Bearer realm=\"debug/pprof\"");
	else if (status)
		reply_error(a, status, why);
	else
		route_path(s, a);
}

size_t
routes_body_max(const struct ask *ask, void *serve)
{
	const char         *path = ask->path, *why;
	const struct route *route;
	bool                wanted;

	if (refused(serve, ask, &why))
		return 0;
	if (!strncmp(path, SERVE_PATH, sizeof(SERVE_PATH) - 1)) {
		route = route_find(path + sizeof(SERVE_PATH) - 1);
		wanted = ask->method == ASK_POST && route && takes(route->methods, ASK_POST);
	} else {
		wanted = page_takes_body(serve, ask);
	}
	return wanted ? HTTPD_BODY_BYTES_MAX : 0;
}
