/*
 * change.c - other options for a server that runs.
 *
 * What can change in place does, so that no window ends because somebody raised a limit.
 * What a stranger would get wrong: a token file or an address that cannot be had must be
 * found out before anything has changed.
 *
 * Tests: tests/profiling.t, tests/reload.t.
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

static void
string_swap(const char **a, const char **b)
{
	const char *was = *a;

	*a = *b;
	*b = was;
}

static void
number_set(int64_t *to, int64_t from)
{
	__atomic_store_n(to, from, __ATOMIC_RELAXED);
}

int
serve_change(struct serve *s, const struct component_profiler_options *o, struct component_error *err)
{
	struct component_profiler_options fresh, *now = &s->options;
	struct component_log_field        file = { "file", NULL };
	const char *const                *hosts;
	struct auth                       auth;
	char                              warning[256];
	int                               r = options_copy(&fresh, o, err);

	if (r)
		return r;
	auth_init(&auth);
	r = auth_token_read(&auth, fresh.token_file, warning, sizeof(warning), err);
	if (!r)
		r = serve_move(s, &fresh, err);
	if (r)
		goto out;
	file.value = fresh.token_file;
	if (*warning)
		serve_log(s, COMPONENT_LOG_WARNING, warning, &file, 1);
	number_set(&now->max_seconds, fresh.max_seconds);
	number_set(&now->max_requests, fresh.max_requests);
	__atomic_store_n(&now->memory_bytes, fresh.memory_bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&now->symbol_memory_bytes, fresh.symbol_memory_bytes, __ATOMIC_RELAXED);
	httpd_set_requests(s->httpd, serve_requests(now));
	pthread_mutex_lock(&s->auth.lock);
	token_take(&s->auth, &auth);
	hosts = now->allowed_hosts;
	now->allowed_hosts = fresh.allowed_hosts;
	pthread_mutex_unlock(&s->auth.lock);
	fresh.allowed_hosts = hosts;
	string_swap(&now->token_file, &fresh.token_file);
	string_swap(&now->address, &fresh.address);
	string_swap(&now->debug_socket_path, &fresh.debug_socket_path);
	string_swap(&now->port_file, &fresh.port_file);
	string_swap(&now->how_named, &fresh.how_named);
out:
	auth_release(&auth);
	options_release(&fresh);
	return r;
}
