/*
 * listen_tcp.c - a host and a port, or a name, to listening sockets.
 *
 *     address --> candidates --> socket, bind, listen --> listen_set
 *                 one, or two      each is tried; one must succeed
 *                 for localhost
 *
 * ":PORT" is one socket of both families; where there is no IPv6, it is IPv4
 * alone.  "localhost" is 127.0.0.1 and ::1 without asking a resolver, as RFC 6761
 * has it: curl and kubectl try either first, and /etc/hosts of a container often
 * lacks one.  Other names are asked for, and every address of the answer is tried.
 *
 * What a stranger would get wrong: SO_REUSEADDR does not share a port that is
 * listened on, it only forgives connections in TIME_WAIT; so "in use" means that
 * somebody is there now, and he is named.  Port 0 with two addresses must give
 * both the same port: the first one's choice is tried on the others, anew when it
 * is taken there.
 *
 * Why not evhttp_bind_socket(): it cuts ports to 16 bits, binds the first address
 * of a name alone, and prints to standard error.
 *
 * Tests: tests/base/test_listen.c, tests/components/profiling.t.
 */
#include <config.h>

#include "listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "listen_owner.h"
#include "our_fd.h"

#define LISTEN_WHY_MAX 384 /* bytes with NUL: address, errno's text, owner and hint */
#define PORT_TRIES_MAX 16 /* choices of a free port that all addresses must have free */

/* One socket address to try. */
struct candidate {
	union {
		struct sockaddr     any;
		struct sockaddr_in  in;
		struct sockaddr_in6 in6;
	};
	bool dual; /* a socket of IPv6 that takes IPv4 too */
};

struct candidates {
	struct candidate items[LISTEN_MAX];
	size_t           count;
	size_t           left_off; /* for want of room */
};

static void
candidate_set_port(struct candidate *c, unsigned port)
{
	if (c->any.sa_family == AF_INET)
		c->in.sin_port = htons((uint16_t)port);
	else
		c->in6.sin6_port = htons((uint16_t)port);
}

static void
candidate_format(const struct candidate *c, char *buf, size_t size)
{
	char host[INET6_ADDRSTRLEN], zone[IF_NAMESIZE + 1] = "";

	if (c->any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &c->in.sin_addr, host, sizeof(host));
		snprintf(buf, size, "%s:%u", host, ntohs(c->in.sin_port));
		return;
	}
	inet_ntop(AF_INET6, &c->in6.sin6_addr, host, sizeof(host));
	if (c->in6.sin6_scope_id && if_indextoname(c->in6.sin6_scope_id, zone + 1))
		zone[0] = '%';
	snprintf(buf, size, "[%s%s]:%u", host, zone, ntohs(c->in6.sin6_port));
}

static void
add(struct candidates *list, const struct candidate *c)
{
	/* /etc/hosts may give a name the same address twice. */
	for (size_t i = 0; i < list->count; i++)
		if (memcmp(&list->items[i], c, sizeof(*c)) == 0)
			return;
	if (list->count == LISTEN_MAX)
		list->left_off++;
	else
		memcpy(&list->items[list->count++], c, sizeof(*c));
}

static void
add_in(struct candidates *list, struct in_addr in)
{
	struct candidate c;

	memset(&c, 0, sizeof(c));
	c.in.sin_family = AF_INET;
	c.in.sin_addr = in;
	add(list, &c);
}

static void
add_in6(struct candidates *list, struct in6_addr in6, unsigned scope)
{
	struct candidate c;

	memset(&c, 0, sizeof(c));
	c.in6.sin6_family = AF_INET6;
	c.in6.sin6_addr = in6;
	c.in6.sin6_scope_id = scope;
	/* A mapped one is IPv4's, which a socket of IPv6 alone does not take. */
	c.dual = IN6_IS_ADDR_UNSPECIFIED(&in6) || IN6_IS_ADDR_V4MAPPED(&in6);
	add(list, &c);
}

/* An IPv6 literal with or without zone.  1: it is none. */
static int
add_literal6(struct candidates *list, const char *text, const char *host, struct component_error *err)
{
	char            literal[ADDRESS_HOST_MAX], *zone;
	struct in6_addr in6;
	unsigned        scope = 0;

	snprintf(literal, sizeof(literal), "%s", host);
	zone = strchr(literal, '%');
	if (zone)
		*zone++ = '\0';
	if (inet_pton(AF_INET6, literal, &in6) != 1)
		return 1;
	if (zone) {
		scope = if_nametoindex(zone);
		if (scope == 0) {
			component_error_set(err, "%s: no interface '%s' on this machine", text, zone);
			return -ENODEV;
		}
	}
	add_in6(list, in6, scope);
	return 0;
}

static int
add_name(struct candidates *list, const char *text, const char *host, struct component_error *err)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *all = NULL;
	int              r;

	if (strcasecmp(host, "localhost") == 0 || strcasecmp(host, "localhost.") == 0) {
		add_in(list, (struct in_addr){ htonl(INADDR_LOOPBACK) });
		add_in6(list, in6addr_loopback, 0);
		return 0;
	}
	r = getaddrinfo(host, NULL, &hints, &all);
	if (r != 0) {
		component_error_set(err, "%s: cannot resolve host '%s': %s", text, host,
			r == EAI_SYSTEM ? strerror(errno) : gai_strerror(r));
		return -ENOENT;
	}
	for (const struct addrinfo *i = all; i; i = i->ai_next) {
		const struct sockaddr_in6 *in6 = (const void *)i->ai_addr;

		if (i->ai_family == AF_INET)
			add_in(list, ((const struct sockaddr_in *)(const void *)i->ai_addr)->sin_addr);
		else if (i->ai_family == AF_INET6)
			add_in6(list, in6->sin6_addr, in6->sin6_scope_id);
	}
	freeaddrinfo(all);
	if (list->count == 0) {
		component_error_set(err, "%s: host '%s' has neither an IPv4 nor an IPv6 address", text, host);
		return -ENOENT;
	}
	return 0;
}

static int
candidates_make(const struct address *a, const char *text, struct candidates *list, struct component_error *err)
{
	struct in_addr in;
	int            r;

	if (!*a->host) {
		add_in6(list, in6addr_any, 0);
		return 0;
	}
	if (inet_pton(AF_INET, a->host, &in) == 1) {
		add_in(list, in);
		return 0;
	}
	r = add_literal6(list, text, a->host, err);
	return r == 1 ? add_name(list, text, a->host, err) : r;
}

static int
candidate_open(const struct candidate *c, int *ret)
{
	int       fd, r, one = 1, v6only = !c->dual;
	socklen_t size = c->any.sa_family == AF_INET ? sizeof(c->in) : sizeof(c->in6);

	fd = our_fd_socket(c->any.sa_family, LISTEN_TYPE);
	if (fd < 0)
		return fd;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    (c->any.sa_family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof(v6only)) < 0) ||
	    bind(fd, &c->any, size) < 0 || listen(fd, LISTEN_BACKLOG) < 0) {
		r = -errno;
		our_fd_close(fd);
		return r;
	}
	*ret = fd;
	return 0;
}

/* What went wrong with one candidate, and the way out as far as it is known here.  Who holds a port is looked for
 * among all processes: only for somebody who asks. */
static void
explain(const struct candidate *c, int error, bool is_asked, char *buf, size_t size)
{
	char        where[128], owner[LISTEN_OWNER_MAX] = "";
	const char *hint = "";
	unsigned    port = ntohs(c->any.sa_family == AF_INET ? c->in.sin_port : c->in6.sin6_port);

	candidate_format(c, where, sizeof(where));
	if (error == -EADDRINUSE && is_asked)
		listen_owner_tcp(&c->any, owner, sizeof(owner));
	else if (error == -EADDRNOTAVAIL)
		hint = "; no interface of this machine has that address";
	else if (error == -EAFNOSUPPORT)
		hint = "; this machine has no such network protocol, write '127.0.0.1:PORT' for IPv4";
	else if ((error == -EACCES || error == -EPERM) && port > 0 && port < 1024)
		hint = "; ports below 1024 need the capability CAP_NET_BIND_SERVICE, use a higher one";
	else if (error == -EINVAL && c->any.sa_family == AF_INET6 && !c->in6.sin6_scope_id)
		hint = "; a link-local address needs its interface, as in '[fe80::1%eth0]:PORT'";
	snprintf(buf, size, "%s: %s%s%s%s", where, strerror(-error), *owner ? ", held by " : "", owner, hint);
}

bool
listen_is_loopback(const struct sockaddr *sa)
{
	const struct in6_addr *in6 = &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
	uint32_t               v4;

	if (sa->sa_family == AF_INET)
		v4 = ntohl(((const struct sockaddr_in *)(const void *)sa)->sin_addr.s_addr);
	else if (IN6_IS_ADDR_V4MAPPED(in6))
		v4 = (uint32_t)in6->s6_addr[12] << 24;
	else
		return IN6_IS_ADDR_LOOPBACK(in6);
	return v4 >> 24 == 127;
}

static void
describe_tcp(const struct candidate *c, struct listen_socket *s)
{
	const char *host_end;
	char       *percent;
	bool        any;

	candidate_format(c, s->address, sizeof(s->address));
	s->loopback = listen_is_loopback(&c->any);
	if (c->any.sa_family == AF_INET) {
		s->port = ntohs(c->in.sin_port);
		any = c->in.sin_addr.s_addr == htonl(INADDR_ANY);
	} else {
		s->port = ntohs(c->in6.sin6_port);
		any = IN6_IS_ADDR_UNSPECIFIED(&c->in6.sin6_addr);
	}
	/* Nobody can go to "every interface"; this name works on this machine. */
	if (any) {
		snprintf(s->url, sizeof(s->url), "http://localhost:%u", s->port);
		return;
	}
	percent = strchr(s->address, '%');
	host_end = percent ? percent : s->address + strlen(s->address);
	snprintf(s->url, sizeof(s->url), "http://%.*s%s%s", (int)(host_end - s->address), s->address,
		percent ? "%25" : "", percent ? percent + 1 : "");
}

int
listen_describe_tcp(int fd, struct listen_socket *s)
{
	struct candidate c = { 0 };
	socklen_t        size = sizeof(c.in6);

	if (getsockname(fd, &c.any, &size) < 0)
		return -errno;
	s->fd = fd;
	describe_tcp(&c, s);
	return 0;
}

static void
note_add(struct listen_set *set, const char *why)
{
	size_t used = strlen(set->note), left = sizeof(set->note) - used, length = strlen(why);

	if (used + length + 3 > sizeof(set->note))
		return; /* the first failures are the telling ones */
	snprintf(set->note + used, left, "%s%.*s", used ? "; " : "", (int)length, why);
}

/*
 * One round over all candidates.  Returns 0, or the first candidate's error when
 * none could be had; -EAGAIN when a port that was chosen freely is taken elsewhere.
 */
static int
open_round(struct candidates *list, unsigned port, struct listen_set *set, struct component_error *err)
{
	int  r = 0, first = 0, fd;
	char why[LISTEN_WHY_MAX];

	for (size_t i = 0; i < list->count; i++) {
		struct candidate *c = &list->items[i];

		candidate_set_port(c, set->count > 0 ? set->sockets[0].port : port);
		r = candidate_open(c, &fd);
		if ((r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL) && c->dual &&
		    IN6_IS_ADDR_UNSPECIFIED(&c->in6.sin6_addr) && list->count == 1) {
			/* No IPv6 here: every interface is then those of IPv4. */
			list->count = 0;
			add_in(list, (struct in_addr){ htonl(INADDR_ANY) });
			candidate_set_port(c, port);
			r = candidate_open(c, &fd);
		}
		if (r == -EADDRINUSE && port == 0 && set->count > 0)
			return -EAGAIN;
		if (r == 0) {
			r = listen_describe_tcp(fd, &set->sockets[set->count]);
			set->sockets[set->count++].fd = fd;
		}
		if (r < 0) {
			explain(c, r, err != NULL, why, sizeof(why));
			if (!first && list->left_off > 0)
				component_error_set(err, "%s; %zu more addresses of that name were not tried", why, list->left_off);
			else if (!first)
				component_error_set(err, "%s", why);
			first = first ? first : r;
			note_add(set, why);
		}
	}
	return set->count > 0 ? 0 : first;
}

int
listen_open_tcp(const struct address *a, struct listen_set *set, struct component_error *err)
{
	struct candidates list = { 0 };
	char              text[ADDRESS_HOST_MAX + 16], why[LISTEN_WHY_MAX];
	int               r;

	address_format(a, text, sizeof(text));
	r = candidates_make(a, text, &list, err);
	for (int tries = 1; r == 0; tries++) {
		struct candidates again = list;

		if (list.left_off > 0) {
			snprintf(why, sizeof(why), "%s: this name has %zu more addresses, which are not served; name those that are wanted",
				text, list.left_off);
			note_add(set, why);
		}
		r = open_round(&again, a->port, set, err);
		if (r != -EAGAIN)
			break;
		while (set->count > 0)
			our_fd_close(set->sockets[--set->count].fd);
		memset(set, 0, sizeof(*set));
		r = 0;
		if (tries == PORT_TRIES_MAX) {
			component_error_set(err, "%s: no port is free on all its addresses; write a port instead of 0", text);
			return -EADDRINUSE;
		}
	}
	return r;
}
