/*
 * page.c - pages of the daemon's own, beside those of profiles and by the same rules.
 *
 * The owner of the profiler lists them, each with its methods, and gives a function; it is called on
 * a job's thread, since it may have to wait for the daemon's loop, which the server never does.
 *
 * A job carries one piece of input, so the request travels as "METHOD PATH\nACCEPT\nBODY";
 * neither of the first three can hold a line end.
 *
 * Tests: tests/components/status_pages.t, tests/components/profiling.t, tests/serve/test_page.c.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "reply.h"
#include "routes.h"
#include "serve.h"

#define BODY_MAX 4096 /* bytes; a value of an option */

/* "GET, HEAD /statusz": its methods, if that is the path of one; else NULL. */
static const char *
methods_of(const struct serve *s, const char *path)
{
	const char *const *all = s->options.page ? s->options.pages : NULL;

	for (; all && *all; all++)
		if (strchr(*all, '/') && !strcmp(strchr(*all, '/'), path))
			return *all;
	return NULL;
}

/* Is the method one of those that stand before the path in "GET, PUT /x"? */
static bool
has_method(const char *methods, const char *method)
{
	size_t n = strlen(method);

	for (const char *at = methods; *at && *at != '/'; at += strcspn(at, ", "), at += strspn(at, ", "))
		if (!strncmp(at, method, n) && strchr(", ", at[n]))
			return true;
	return false;
}

bool
page_takes_body(const struct serve *s, const struct ask *ask)
{
	const char *methods = methods_of(s, ask->path);

	return methods && (ask->method == ASK_POST || ask->method == ASK_OTHER) && ask->method_name &&
		has_method(methods, ask->method_name);
}

static const struct answer_header *
headers_of(const char *type)
{
	static const struct answer_header text[] = { { "Content-Type", ANSWER_TEXT }, { "X-Content-Type-Options", "nosniff" },
		{ "Cache-Control", "no-store" }, { "Vary", "Accept" }, { NULL, NULL } };
	static const struct answer_header json[] = { { "Content-Type", SERVE_JSON }, { "X-Content-Type-Options", "nosniff" },
		{ "Cache-Control", "no-store" }, { "Vary", "Accept" }, { NULL, NULL } };

	return type && !strcmp(type, SERVE_JSON) ? json : text;
}

static int
page_run(struct job *j)
{
	const struct component_profiler_options *o = &j->serve->options;
	struct component_profiler_page page = { .status = 200 };
	char *input = strndup(j->spec.input, j->spec.input_size), *path, *accept, *body;
	int   r = 0;

	if (!input)
		return -ENOMEM;
	path = strchr(input, ' ');
	accept = strchr(input, '\n');
	body = strchr(accept + 1, '\n');
	*path++ = *accept++ = *body++ = '\0';
	page.method = input;
	page.path = path;
	page.accept = accept;
	page.body = body;
	o->page(o->page_arg, &page);
	j->spec.headers = headers_of(page.type);
	if (!page.text)
		r = -ENOMEM;
	else if (page.status != 200)
		job_fail(j, page.status, page.text);
	else
		r = job_write(j, page.text, strlen(page.text));
	free(page.text);
	free(input);
	return r;
}

static void
reply_methods(struct answer *a, const char *methods)
{
	static const char text[] = "Method Not Allowed\n";
	char allow[64];

	snprintf(allow, sizeof(allow), "%.*s", (int)strcspn(methods, "/") - 1, methods);
	reply_with(a, 405, ANSWER_TEXT, text, sizeof(text) - 1, "Allow", allow);
}

bool
page_reply(struct serve *s, struct answer *a)
{
	struct job_spec spec = { .run = page_run };
	const char     *methods = methods_of(s, a->ask.path);
	const char     *name = a->ask.method == ASK_GET || a->ask.method == ASK_HEAD ? "GET" :
			       a->ask.method == ASK_POST ? "POST" : a->ask.method_name;
	size_t          size = a->ask.body_size;
	char           *input;
	int             n;

	if (!methods)
		return false;
	if (!name || !has_method(methods, name)) {
		reply_methods(a, methods);
		return true;
	}
	if (size > BODY_MAX) {
		reply_error(a, 413, "the body is too long for the value of an option");
		return true;
	}
	n = asprintf(&input, "%s %s\n%s\n%.*s", name, a->ask.path, a->ask.accept ? a->ask.accept : "", (int)size,
		size ? a->ask.body : "");
	if (n < 0) {
		reply_error(a, 500, "out of memory");
		return true;
	}
	spec.input = input;
	spec.input_size = (size_t)n;
	job_start(s, a, &spec);
	free(input);
	return true;
}
