/*
 * debug_page.c - pages of the daemon's own on the debug socket.
 *
 * The owner of the profiler gives a function; it is called on a job's thread, since
 * it may have to wait for the daemon's loop, which the server never does.  Only the
 * debug socket has these pages: its file mode is a protection, an address is none.
 *
 * A job carries one piece of input, so the request travels as "METHOD PATH\\nBODY";
 * neither method nor path can hold a blank or a line end.
 *
 * Tests: tests/components/profiling.t.
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

/* The listener knows, see place_open() of addresses.c: the path may have changed since it was opened,
 * and a reload may free it at any moment.  Other doors have no tag. */
static bool
is_of_debug_socket(const struct ask *ask)
{
	return (uintptr_t)ask->tag & 1;
}

bool
debug_page_is_for(const struct serve *s, const struct ask *ask)
{
	return s->options.debug_page && is_of_debug_socket(ask) && !strpbrk(ask->path, " \r\n");
}

static int
page_run(struct job *j)
{
	const struct component_profiler_options *o = &j->serve->options;
	char  *input = strndup(j->spec.input, j->spec.input_size), *path, *body, *text = NULL;
	int    status, r = 0;

	if (!input)
		return -ENOMEM;
	path = strchr(input, ' ');
	body = strchr(input, '\n');
	*path++ = '\0';
	*body++ = '\0';
	status = o->debug_page(o->debug_page_arg, input, path, body, &text);
	if (!text)
		r = -ENOMEM;
	else if (status != 200)
		job_fail(j, status, text);
	else
		r = job_write(j, text, strlen(text));
	free(text);
	free(input);
	return r;
}

bool
debug_page_reply(struct serve *s, struct answer *a)
{
	struct job_spec spec = { .run = page_run };
	char           *input;
	size_t          size = a->ask.body_size;
	int             n;

	if (!debug_page_is_for(s, &a->ask))
		return false;
	if (size > BODY_MAX) {
		reply_error(a, 413, "the body is too long for the value of an option");
		return true;
	}
	n = asprintf(&input, "%s %s\n%.*s", a->ask.method_name, a->ask.path, (int)size, size ? a->ask.body : "");
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
