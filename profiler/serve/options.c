/*
 * options.c - a deep copy of what component_profiler_start_options() is given, so
 * that the caller's strings may go, and a forked child can start from it again.
 *
 * The struct carries its size: a program built against an older header hands over
 * a shorter one, and what it does not know keeps its default.
 *
 * Tests: tests/test_options.c.
 */
#include <config.h>

#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_LEAST offsetof(struct component_profiler_options, debug_socket_path)

static int
string_copy(const char **s)
{
	if (*s && !(*s = strdup(*s)))
		return -ENOMEM;
	return 0;
}

static int
list_copy(const char *const **list)
{
	const char *const *from = *list;
	const char       **to;
	size_t             n = 0;

	*list = NULL;
	if (!from)
		return 0;
	while (from[n])
		n++;
	to = calloc(n + 1, sizeof(*to));
	if (!to)
		return -ENOMEM;
	*list = to;
	for (size_t i = 0; i < n; i++) {
		to[i] = strdup(from[i]);
		if (!to[i])
			return -ENOMEM;
	}
	return 0;
}

static int
check(const struct component_profiler_options *o, struct component_error *err)
{
	if (o->max_seconds <= 0)
		component_error_set(err, "max_seconds: %lld is not above 0", (long long)o->max_seconds);
	else if (o->max_requests <= 0)
		component_error_set(err, "max_requests: %lld is not above 0", (long long)o->max_requests);
	else
		return 0;
	return -EINVAL;
}

int
options_copy(struct component_profiler_options *to, const struct component_profiler_options *from,
	struct component_error *err)
{
	struct component_profiler_options o = COMPONENT_PROFILER_OPTIONS_INIT;
	const char                      **strings[] = { &o.address, &o.debug_socket_path, &o.token_file, &o.port_file,
		&o.how_named };
	const size_t                      count = sizeof(strings) / sizeof(strings[0]);
	size_t                            done = 0;
	int                               r;

	if (from->size < SIZE_LEAST || from->size > 16 * sizeof(o)) {
		component_error_set(err, "struct component_profiler_options: size %zu; "
			"start with COMPONENT_PROFILER_OPTIONS_INIT", from->size);
		return -EINVAL;
	}
	memcpy(&o, from, from->size < sizeof(o) ? from->size : sizeof(o));
	o.size = sizeof(o);
	r = check(&o, err);
	if (r)
		return r;
	/* From here on what is not copied must not be freed. */
	for (; !r && done < count; done++)
		r = string_copy(strings[done]);
	for (; done < count; done++)
		*strings[done] = NULL;
	if (r)
		o.allowed_hosts = o.redact = NULL;
	if (!r)
		r = list_copy(&o.allowed_hosts);
	if (r)
		o.redact = NULL;
	else
		r = list_copy(&o.redact);
	if (r) {
		options_release(&o);
		return r;
	}
	*to = o;
	return 0;
}

static void
list_release(const char *const *list)
{
	for (size_t i = 0; list && list[i]; i++)
		free((char *)(uintptr_t)list[i]);
	free((char **)(uintptr_t)list);
}

void
options_release(struct component_profiler_options *o)
{
	free((char *)(uintptr_t)o->address);
	free((char *)(uintptr_t)o->debug_socket_path);
	free((char *)(uintptr_t)o->token_file);
	free((char *)(uintptr_t)o->port_file);
	free((char *)(uintptr_t)o->how_named);
	list_release(o->allowed_hosts);
	list_release(o->redact);
	memset(o, 0, sizeof(*o));
}
