/*
 * evhttp.c - our routes on a program's own evhttp: where they are mounted.
 *
 *     evhttp's general callback --> on_request() --> a path of ours: evhttp_door.c
 *                                                --> any other: the program's callback
 *
 * There is one server and one set of rules for who may ask what; routes.c says which paths are ours.
 *
 * What a stranger would get wrong: the functions of libevent_extra are weak.  Who mounts has
 * linked them, and nobody else has to load that library.
 *
 * Tests: tests/serve/evhttp.t.
 */
#include <config.h>

#include <component/evhttp.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addresses.h"
#include "evhttp_door.h"
#include "expected_library.h"
#include "fork.h"
#include "routes.h"

#pragma weak evhttp_request_get_evhttp_uri
#pragma weak evhttp_send_error
#pragma weak evhttp_send_reply_end
#pragma weak evhttp_set_gencb
#pragma weak evhttp_uri_get_path

#define PREFIX_MAX 127 /* bytes */

struct mount {
	struct mount       *next;
	struct evhttp      *http;
	component_evhttp_fn *other;
	void               *other_arg;
	size_t              prefix_size;
	char                prefix[PREFIX_MAX + 1];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* mounts; loops may be several */
static struct mount   *mounts;

static void
on_request(struct evhttp_request *request, void *arg)
{
	const struct mount      *m = arg;
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
	const char              *path = uri ? evhttp_uri_get_path(uri) : NULL;

	if (path)
		path = strncmp(path, m->prefix, m->prefix_size) ? NULL : path + m->prefix_size;
	if (path && routes_has(path))
		evhttp_door_ask(request, path, m->prefix);
	else if (m->other)
		m->other(request, m->other_arg);
	else
		evhttp_send_error(request, HTTP_NOTFOUND, NULL);
}

static void
on_forked(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	lock = fresh;
	evhttp_door_forked();
}

FORK_SLOT(FORK_MOUNTS, NULL, NULL, on_forked);

static int
prefix_check(const char *prefix, struct component_error *err)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
	size_t            n = strlen(prefix);

	if (n == 0 || (n <= PREFIX_MAX && prefix[0] == '/' && prefix[n - 1] != '/' && prefix[strspn(prefix, plain)] == '\0'))
		return 0;
	component_error_set(err, "prefix '%s': write \"\" or a path like \"/internal\", of at most %d letters, digits, "
		"'-', '.', '_', '~' and '/', without a slash at its end", prefix, PREFIX_MAX);
	return -EINVAL;
}

static int
libevent_check(void (*send_reply_end)(struct evhttp_request *), struct component_error *err)
{
	static const char *const library[] = { "libevent_extra", "libevent-", "libevent.", NULL };

	if (send_reply_end != evhttp_send_reply_end || !evhttp_set_gencb) {
		component_error_set(err, "profiles cannot be mounted: the program has another libevent than libcomponent; "
			"link both with the same shared library (libevent_extra)");
		return -ENOTSUP;
	}
	return expected_library_check((const void *)(uintptr_t)evhttp_send_reply_end, "evhttp_send_reply_end", library, err);
}

/* With the lock held: the one of that server, or a new one. */
static struct mount *
mount_of(struct evhttp *http)
{
	struct mount *m;

	for (m = mounts; m && m->http != http; m = m->next)
		;
	if (m)
		return m;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->http = http;
	m->next = mounts;
	mounts = m;
	addresses_mounted(1);
	return m;
}

int
component_evhttp_mount_with(void (*send_reply_end)(struct evhttp_request *), struct evhttp *http, const char *prefix,
	component_evhttp_fn *other, void *other_arg, struct component_error *err)
{
	struct mount *m;
	int           r = prefix_check(prefix ? prefix : "", err);

	if (!r)
		r = libevent_check(send_reply_end, err);
	if (!r)
		r = expected_library_libevent(err);
	if (r)
		return r;
	pthread_mutex_lock(&lock);
	m = mount_of(http);
	if (m) {
		snprintf(m->prefix, sizeof(m->prefix), "%s", prefix ? prefix : "");
		m->prefix_size = strlen(m->prefix);
		m->other = other;
		m->other_arg = other_arg;
	}
	pthread_mutex_unlock(&lock);
	if (!m) {
		component_error_set(err, "profiles cannot be mounted: out of memory");
		return -ENOMEM;
	}
	evhttp_set_gencb(http, on_request, m);
	return 0;
}

int
component_evhttp_unmount(struct evhttp *http)
{
	struct mount **at, *m;

	pthread_mutex_lock(&lock);
	for (at = &mounts; *at && (*at)->http != http; at = &(*at)->next)
		;
	m = *at;
	if (m)
		*at = m->next;
	pthread_mutex_unlock(&lock);
	if (!m)
		return -ENOENT;
	addresses_mounted(-1);
	evhttp_set_gencb(http, m->other, m->other_arg);
	free(m);
	return 0;
}
