/*
 * routes.c - from a request to whoever answers it, by the rules of Go's
 * net/http/pprof and its mux.
 *
 * The order is part of the contract: Host, token, path, method, name, parameters.
 * An unclean path is redirected, a known path with another method is 405 without
 * X-Go-Pprof, a name that is no profile is 404 with it, and "seconds" is looked at
 * before "debug".
 *
 * What a stranger would get wrong: go tool pprof shows the text of an error only if
 * X-Go-Pprof is there and the type is text/plain, so every error of ours has both;
 * answers of the mux (404 of foreign paths, 405) have neither in Go, and clients
 * tell the two apart by that.
 *
 * What the parameters of a profile mean is spec.c's.
 *
 * Tests: tests/serve_http.t, tests/serve_auth.t.
 */
#include <config.h>

#include "serve.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
reply_text(struct httpd_request *r, int status, const char *type, const void *body, size_t size)
{
	httpd_set_header(r, "X-Content-Type-Options", "nosniff");
	httpd_reply(r, status, type, body, size);
}

void
reply_error(struct httpd_request *r, int status, const char *text)
{
	char   body[1024];
	int    n = snprintf(body, sizeof(body), "%s\n", text);

	if (n >= (int)sizeof(body))
		n = (int)sizeof(body) - 1;
	httpd_set_header(r, "X-Go-Pprof", "1");
	reply_text(r, status, SERVE_TEXT, body, (size_t)n);
}

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
redirect(struct httpd_request *r, const char *path)
{
	const char *before = httpd_note(r) ? httpd_note(r) : "";
	char       *full = NULL, *location = NULL, *link = NULL, *body = NULL;
	int         n = -1;

	if (asprintf(&full, "%s%s", before, path) < 0)
		full = NULL;
	if (full) {
		location = path_escape(full, httpd_query(r));
		link = path_escape(full, NULL);
	}
	if (location && link)
		n = asprintf(&body, "<a href=\"%s\">Moved Permanently</a>.\n\n", link);
	if (n < 0) {
		body = NULL;
		reply_error(r, 500, "out of memory");
		goto out;
	}
	httpd_set_header(r, "Location", location);
	httpd_reply(r, 301, SERVE_HTML, body, (size_t)n);
out:
	free(body);
	free(link);
	free(location);
	free(full);
}

static void
reply_plain(struct httpd_request *r, int status, const char *text)
{
	reply_text(r, status, SERVE_TEXT, text, strlen(text));
}

static void
reply_wrong_method(struct httpd_request *r, const char *allowed)
{
	httpd_set_header(r, "Allow", allowed);
	reply_plain(r, 405, "Method Not Allowed\n");
}

static void
route_kind(struct serve *s, struct httpd_request *r, const struct kind *kind)
{
	struct job_spec spec;
	char            why[SPEC_WHY_BYTES];

	if (spec_read(kind, httpd_query(r), __atomic_load_n(&s->options.max_seconds, __ATOMIC_RELAXED), &spec, why))
		reply_error(r, 400, why);
	else
		job_start(s, r, &spec);
}

static void
route_symbol(struct serve *s, struct httpd_request *r)
{
	struct job_spec spec = { .run = symbol_run, .format = JOB_TEXT };

	if (httpd_method(r) == HTTPD_POST) {
		spec.input = httpd_body(r, &spec.input_size);
	} else {
		spec.input = httpd_query(r);
		spec.input_size = spec.input ? strlen(spec.input) : 0;
	}
	job_start(s, r, &spec);
}

static bool
is_with_body(const char *name)
{
	return !strcmp(name, "symbol") || !strcmp(name, "rates");
}

static void
route_name(struct serve *s, struct httpd_request *r, const char *name)
{
	enum httpd_method  method = httpd_method(r);
	const struct kind *kind;

	if (method == HTTPD_OTHER || (method == HTTPD_POST && !is_with_body(name))) {
		reply_wrong_method(r, is_with_body(name) ? "GET, HEAD, POST" : "GET, HEAD");
		return;
	}
	if (!strcmp(name, "symbol")) {
		route_symbol(s, r);
		return;
	}
	if (!strcmp(name, "rates")) {
		rates_reply(s, r);
		return;
	}
	if (!*name) {
		index_reply(s, r);
		return;
	}
	kind = spec_kind(name);
	if (kind && spec_is_job(kind))
		route_kind(s, r, kind);
	else if (kind && !strcmp(name, "cmdline"))
		cmdline_reply(s, r);
	else
		reply_error(r, 404, "Unknown profile");
}

static void
route_path(struct serve *s, struct httpd_request *r)
{
	const char *path = httpd_path(r);
	char       *clean = path_clean(path);

	if (!clean) {
		reply_error(r, 500, "out of memory");
		return;
	}
	if (strcmp(clean, path) && *path == '/') {
		redirect(r, clean);
	} else if (!strncmp(path, SERVE_PATH, sizeof(SERVE_PATH) - 1)) {
		route_name(s, r, path + sizeof(SERVE_PATH) - 1);
	} else if (!strcmp(path, "/debug/fgprof")) { /* where scrapers look for it */
		route_name(s, r, "fgprof");
	} else if (!strncmp(path, SERVE_PATH, sizeof(SERVE_PATH) - 2) && !path[sizeof(SERVE_PATH) - 2]) {
		if (httpd_method(r) == HTTPD_GET || httpd_method(r) == HTTPD_HEAD)
			redirect(r, SERVE_PATH);
		else
			reply_wrong_method(r, "GET, HEAD");
	} else if (!page_route(s, r)) {
		reply_plain(r, 404, "404 page not found\n");
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
refused(struct serve *s, const struct httpd_request *r, const char **ret_why)
{
	const struct listen_socket *listener = httpd_listener(r);
	const char                 *host = httpd_header(r, "Host");

	/* The debug socket, and any unix socket, is protected by its file's mode. */
	if (!listener->is_unix) {
		*ret_why = "this Host is not served on a loopback address; if it is yours, name it with --profiling-allowed-host";
		if (listener->loopback && !host_ok(s, host))
			return 403;
		*ret_why = "a token is needed: send 'Authorization: Bearer TOKEN' or append ?token=TOKEN";
		if (!auth_token_ok(&s->auth, httpd_header(r, "Authorization"), httpd_query(r)))
			return 401;
	}
	*ret_why = "a POST from a page of another origin is refused";
	return httpd_method(r) == HTTPD_POST && !auth_origin_ok(httpd_header(r, "Origin"), host) ? 403 : 0;
}

void
routes_on_request(struct httpd_request *r, void *serve)
{
	struct serve *s = serve;
	const char   *why;
	int           status = refused(s, r, &why);

	if (status == 401)
		httpd_set_header(r, "WWW-Authenticate", "Bearer realm=\"debug/pprof\"");
	if (status)
		reply_error(r, status, why);
	else
		route_path(s, r);
}

size_t
routes_body_max(const struct httpd_request *r, void *serve)
{
	const char *path = httpd_path(r), *why;
	bool        wanted;

	if (refused(serve, r, &why))
		return 0;
	if (!strncmp(path, SERVE_PATH, sizeof(SERVE_PATH) - 1))
		wanted = httpd_method(r) == HTTPD_POST && is_with_body(path + sizeof(SERVE_PATH) - 1);
	else
		wanted = page_is_for(serve, r);
	return wanted ? HTTPD_BODY_BYTES_MAX : 0;
}
