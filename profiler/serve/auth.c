/*
 * auth.c - who may ask: a name in Host, a token, an Origin.
 *
 * Host.  A page in a browser can make its own name resolve to 127.0.0.1 and read
 * what a loopback server answers (DNS rebinding); its requests carry that name.
 * Address literals and localhost cannot be rebound, and tools send them.
 *
 * Token.  go tool pprof cannot send a header, so ?token= is accepted as well as
 * "Authorization: Bearer".  Compared in time that depends on the lengths alone,
 * never logged, never put into a link.  The file is re-read on request: a token is
 * replaced without a restart, and a file that cannot be read keeps the old one.
 *
 * What a stranger would get wrong: mounted secrets are symbolic links and are
 * often readable by all, so the first is followed and the second is a warning; a
 * file that others may write is refused, since they choose the token then.
 *
 * Tests: tests/serve/test_auth.c, tests/serve/auth.t.
 */
#include <config.h>

#include "auth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "our_fd.h"
#include "query.h"

int
auth_init(struct auth *a)
{
	memset(a, 0, sizeof(*a));
	if (gethostname(a->hostname, sizeof(a->hostname) - 1))
		a->hostname[0] = '\0';
	return -pthread_mutex_init(&a->lock, NULL);
}

void
auth_release(struct auth *a)
{
	explicit_bzero(a->token, sizeof(a->token));
	pthread_mutex_destroy(&a->lock);
}

/* Text of the file without blanks around it; -EINVAL with a reason. */
static int
token_load(int fd, const char *path, char *token, size_t *ret_size, struct component_error *err)
{
	char   text[SERVE_TOKEN_MAX + 64];
	size_t size = 0, start;
	ssize_t n;
	int    r = -EINVAL;

	while (size < sizeof(text) && (n = read(fd, text + size, sizeof(text) - size)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			r = -errno;
			component_error_set(err, "token file '%s': %s", path, strerror(errno));
			goto out;
		}
		size += (size_t)n;
	}
	while (size > 0 && strchr(" \t\r\n", text[size - 1]))
		size--;
	for (start = 0; start < size && strchr(" \t\r\n", text[start]); start++)
		;
	size -= start;
	if (size == 0) {
		component_error_set(err, "token file '%s' is empty; write one line of letters and digits into it", path);
		goto out;
	}
	if (size > SERVE_TOKEN_MAX) {
		component_error_set(err, "token file '%s': the token is longer than %d bytes", path, SERVE_TOKEN_MAX);
		goto out;
	}
	for (size_t i = start; i < start + size; i++)
		if (text[i] <= ' ' || text[i] > '~') {
			component_error_set(err, "token file '%s': a blank or a control or non-ASCII character inside "
				"the token; write one line of letters and digits", path);
			goto out;
		}
	memcpy(token, text + start, size);
	*ret_size = size;
	r = 0;
out:
	explicit_bzero(text, sizeof(text));
	return r;
}

static int
token_open(const char *path, char *warning, size_t warning_size, int *ret_fd, struct component_error *err)
{
	int         fd = our_fd_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	struct stat st;
	int         r;

	if (fd < 0 || fstat(fd, &st)) {
		r = fd < 0 ? fd : -errno;
		component_error_set(err, "token file '%s': %s", path, strerror(-r));
		goto out;
	}
	r = -EINVAL;
	if (!S_ISREG(st.st_mode)) {
		component_error_set(err, "token file '%s' is not a regular file", path);
		goto out;
	}
	r = -EPERM;
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		component_error_set(err, "token file '%s' may be written by others (mode %04o); run chmod go-w on it",
			path, (unsigned)(st.st_mode & 07777));
		goto out;
	}
	/* Where another user owns it, as in a pod, this one reads it by its group. */
	if ((st.st_mode & S_IROTH) || ((st.st_mode & S_IRGRP) && st.st_uid == geteuid()))
		snprintf(warning, warning_size, "the token file may be read by others; run chmod go-r on it");
	*ret_fd = fd;
	return 0;
out:
	our_fd_close(fd);
	return r;
}

int
auth_token_read(struct auth *a, const char *path, char *warning, size_t warning_size, struct component_error *err)
{
	char   token[SERVE_TOKEN_MAX] = "";
	size_t size = 0;
	int    fd = -1, r;

	warning[0] = '\0';
	if (path && *path) {
		r = token_open(path, warning, warning_size, &fd, err);
		if (r)
			return r;
		r = token_load(fd, path, token, &size, err);
		our_fd_close(fd);
		if (r)
			return r;
	}
	pthread_mutex_lock(&a->lock);
	explicit_bzero(a->token, sizeof(a->token));
	memcpy(a->token, token, size);
	a->token_size = size;
	pthread_mutex_unlock(&a->lock);
	explicit_bzero(token, sizeof(token));
	return 0;
}

void
auth_token_swap(struct auth *used, struct auth *other)
{
	char   token[SERVE_TOKEN_MAX];
	size_t size;

	pthread_mutex_lock(&used->lock);
	memcpy(token, used->token, sizeof(token));
	size = used->token_size;
	memcpy(used->token, other->token, sizeof(token));
	used->token_size = other->token_size;
	pthread_mutex_unlock(&used->lock);
	memcpy(other->token, token, sizeof(token));
	other->token_size = size;
	explicit_bzero(token, sizeof(token));
}

static bool
token_same(const struct auth *a, const char *given, size_t size)
{
	volatile unsigned char differ = size != a->token_size;

	for (size_t i = 0; i < a->token_size; i++)
		differ |= (unsigned char)(a->token[i] ^ (size ? given[i % size] : 0));
	return !differ;
}

bool
auth_token_ok(struct auth *a, const char *authorization, const char *query)
{
	char value[SERVE_TOKEN_MAX + 2];
	bool ok;

	pthread_mutex_lock(&a->lock);
	ok = a->token_size == 0;
	if (authorization && !strncasecmp(authorization, "Bearer ", 7)) {
		authorization += 7 + strspn(authorization + 7, " ");
		ok |= token_same(a, authorization, strlen(authorization));
	}
	if (query_get(query, "token", value, sizeof(value))) {
		/* A token has no blanks: what reads as one was written '+', as base64 has it. */
		for (char *c = value; (c = strchr(c, ' '));)
			*c = '+';
		ok |= token_same(a, value, strlen(value));
	}
	pthread_mutex_unlock(&a->lock);
	explicit_bzero(value, sizeof(value));
	return ok;
}

/* "name:port", "[v6]:port", "name" to the name; false when it is too long. */
static bool
host_name(const char *host, char *buf, size_t size)
{
	size_t n;

	if (*host == '[') {
		n = strcspn(++host, "]%");
	} else {
		const char *colon = strrchr(host, ':');

		/* Several colons without brackets: an IPv6 literal and no port. */
		n = colon && strchr(host, ':') == colon ? (size_t)(colon - host) : strlen(host);
	}
	if (n >= size)
		return false;
	memcpy(buf, host, n);
	buf[n] = '\0';
	if (n > 1 && buf[n - 1] == '.')
		buf[n - 1] = '\0'; /* the root's dot */
	return true;
}

static bool
is_literal(const char *name)
{
	struct in6_addr six;
	struct in_addr  four;

	return inet_pton(AF_INET, name, &four) == 1 || inet_pton(AF_INET6, name, &six) == 1;
}

bool
auth_host_ok(const struct auth *a, const char *host, const char *const *allowed)
{
	char        name[256];
	const char *dot;

	if (!host || !*host)
		return true;
	if (!host_name(host, name, sizeof(name)))
		return false;
	if (is_literal(name) || !strcasecmp(name, "localhost"))
		return true;
	if (a->hostname[0] && !strcasecmp(name, a->hostname))
		return true;
	dot = strchr(a->hostname, '.');
	if (dot && strlen(name) == (size_t)(dot - a->hostname) && !strncasecmp(name, a->hostname, strlen(name)))
		return true;
	for (; allowed && *allowed; allowed++)
		if (!fnmatch(*allowed, name, FNM_CASEFOLD))
			return true;
	return false;
}

/* A browser names the page a POST comes from; tools send none. */
bool
auth_origin_ok(const char *origin, const char *host)
{
	const char *name;

	if (!origin)
		return true;
	name = strstr(origin, "://");
	return name && host && !strcasecmp(name + 3, host);
}
