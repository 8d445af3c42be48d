/*
 * change.c - other options for a server that runs.
 *
 * What can change in place does, so that no window ends because somebody raised a limit.
 * What a stranger would get wrong: a token file or an address that cannot be had must be
 * found out before anything has changed.
 *
 * Tests: tests/components/profiling.t, tests/components/reload.t.
 */
#include <config.h>

#include "serve.h"

#include <string.h>

#include "options.h"

static void
token_take(struct auth *to, const struct auth *from)
{
	explicit_bzero(to->token, sizeof(to->token));
	memcpy(to->token, from->token, from->token_size);
	to->token_size = from->token_size;
}

int
serve_change(struct serve *s, const struct component_profiler_options *o, enum profiler_fault *ret_fault, struct component_error *err)
{
	struct component_profiler_options fresh;
	struct component_log_field        file = { "file", NULL };
	struct auth                       auth;
	char                              warning[256];
	int                               r = options_copy(&fresh, o, err);

	if (r)
		return r;
	auth_init(&auth);
	r = auth_token_read(&auth, fresh.token_file, warning, sizeof(warning), err);
	if (!r)
		r = serve_move(s, &fresh, ret_fault, err);
	if (r)
		goto out;
	file.value = fresh.token_file;
	if (*warning)
		serve_log(s, COMPONENT_LOG_WARNING, warning, &file, 1);
	pthread_mutex_lock(&s->auth.lock);
	token_take(&s->auth, &auth);
	options_change(&s->options, &fresh);
	pthread_mutex_unlock(&s->auth.lock);
	httpd_set_requests(s->httpd, serve_requests(&s->options));
out:
	auth_release(&auth);
	options_release(&fresh);
	return r;
}
