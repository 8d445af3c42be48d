/*
 * listener.c - listening sockets: added, accepted from, rested, closed.
 *
 * Accepting is ours rather than evconnlistener's so that each descriptor is known
 * the moment it exists (httpd_forked() closes it), is never 0 to 2, and what keeps us
 * from accepting (no descriptor is left, a filter or a security module forbids it) is met by
 * a pause: the listener stays readable then, and its event would come again at once and for ever.
 *
 * Tests: tests/http/limits.t, tests/http/test_listener.c, tests/serve/start_stop.t.
 */
#include <config.h>

#include "listener.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "connection.h"
#include "posted_calls.h"
#include "server.h"


#define ACCEPTS_AT_ONCE 16 /* then other clients have a turn */

/* Of a connection that is gone, or of the call: the next one may succeed.  accept(2) tells of the network's. */
static bool
error_passes(int error)
{
	switch (error) {
	case EAGAIN:
	case EINTR:
	case ECONNABORTED:
	case ENETDOWN:
	case EPROTO:
	case ENOPROTOOPT:
	case EHOSTDOWN:
	case ENONET:
	case EHOSTUNREACH:
	case EOPNOTSUPP:
	case ENETUNREACH:
		return true;
	default:
		return false;
	}
}

/* The listener rests; the log says so once a minute. */
static void
listener_rest(struct httpd_listener *l, int error)
{
	struct httpd              *h = l->h;
	struct component_log_field fields[] = {
		{ "address", l->socket.address },
		{ "error", strerror(error) },
	};
	int64_t                    now_s = clock_ns(CLOCK_MONOTONIC) / CLOCK_NS_PER_S;

	event_del(l->ready);
	httpd_timer_set(h, l->rest, HTTPD_REST_MS);
	if (!h->options.log || (h->rest_logged_once && now_s - h->rest_logged < HTTPD_REST_LOG_SECONDS))
		return;
	h->rest_logged = now_s;
	h->rest_logged_once = true;
	h->options.log(h->options.log_arg, COMPONENT_LOG_WARNING, "cannot accept a connection, trying again every second",
		fields, 2);
}

/* No place for a connection: who comes waits in the kernel. */
static void
listener_wait(struct httpd_listener *l, unsigned ms)
{
	event_del(l->ready);
	httpd_timer_set(l->h, l->rest, ms);
	l->crowded = true;
}

/* False: nothing more to accept now. */
static bool
accept_one(struct httpd_listener *l)
{
	struct sockaddr_storage peer = { .ss_family = AF_UNSPEC };
	socklen_t               size = sizeof(peer);
	struct httpd_conn      *c;
	sigset_t                mask;
	int                     fd, floor;
	unsigned                ms = httpd_place_ms(l);

	if (ms) {
		listener_wait(l, ms);
		return false;
	}
	/* Before there is a descriptor: no allocation while no thread may fork. */
	c = httpd_place(l->h);
	floor = fd_floor_now();
	our_fd_hold(&mask); /* a child must know it, or not have it */
	fd = fd_keep(accept4(l->socket.fd, (struct sockaddr *)&peer, &size,
		SOCK_NONBLOCK | SOCK_CLOEXEC));
	fd = fd < 0 ? fd : fd_move(fd, floor);
	if (c)
		our_fd_keep(&c->fd, fd);
	else if (fd >= 0)
		close(fd);
	our_fd_release(&mask);
	if (fd < 0 && !error_passes(-fd))
		listener_rest(l, -fd);
	if (fd >= 0 && c)
		httpd_conn_open(c, l, &peer);
	return fd >= 0 || fd == -ECONNABORTED;
}

static void
on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct httpd_listener *l = arg;

	(void)fd;
	(void)what;
	for (int i = 0; i < ACCEPTS_AT_ONCE; i++)
		if (!accept_one(l))
			return;
}

static void
on_rested(evutil_socket_t fd, short what, void *arg)
{
	struct httpd_listener *l = arg;

	(void)fd;
	(void)what;
	l->crowded = false;
	if (l->ready && !l->deaf)
		event_add(l->ready, NULL);
}

static struct our_fd_kept *
listener_fd(struct httpd_listener *l)
{
	return &l->h->fds[HTTPD_FD_LISTENERS + (l - l->h->listeners)];
}

static void
listener_events_free(struct httpd_listener *l)
{
	httpd_event_free(&l->ready);
	httpd_event_free(&l->rest);
}

/* Its socket stays open, and is one of a listen_set's again. */
static void
listener_unwatch(struct httpd_listener *l)
{
	sigset_t mask;

	listener_events_free(l);
	our_fd_hold(&mask);
	our_fd_note(l->socket.fd);
	listener_fd(l)->fd = -1;
	our_fd_release(&mask);
}

static int
listener_watch(struct httpd_listener *l)
{
	sigset_t mask;

	l->ready = event_new(l->h->base, l->socket.fd, EV_READ | EV_PERSIST, on_ready, l);
	l->rest = evtimer_new(l->h->base, on_rested, l);
	our_fd_hold(&mask);
	our_fd_forget(l->socket.fd);
	our_fd_keep(listener_fd(l), l->socket.fd);
	our_fd_release(&mask);
	if (l->ready && l->rest && event_add(l->ready, NULL) == 0)
		return 0;
	listener_unwatch(l);
	return -ENOMEM;
}

static void
listener_drop(struct httpd_listener *l)
{
	struct listen_set set = { .count = 1, .sockets = { l->socket } };

	listener_events_free(l);
	listen_unlink(&set);
	our_fd_kept_close(listener_fd(l)); /* known up to here: a child that is forked meanwhile closes it */
}

void
httpd_listeners_close(struct httpd *h)
{
	for (size_t i = 0; i < h->listener_count; i++)
		if (h->listeners[i].ready)
			listener_drop(&h->listeners[i]);
}

void
httpd_listeners_forget(struct httpd *h)
{
	for (size_t i = 0; i < h->listener_count; i++) {
		struct httpd_listener *l = &h->listeners[i];

		l->again = l->ready != NULL;
		l->ready = l->rest = NULL;
		our_fd_kept_close(listener_fd(l));
	}
}

/* Takes back those that were just added: the sockets are the caller's still. */
static void
listeners_take_back(struct httpd *h, const struct listen_set *set)
{
	for (size_t i = 0; i < h->listener_count; i++) {
		struct httpd_listener *l = &h->listeners[i];
		bool                   added = false;

		for (size_t n = 0; n < set->count; n++)
			added = added || (l->ready && l->socket.fd == set->sockets[n].fd);
		if (added)
			listener_unwatch(l);
	}
}

/* Room for one: never used, or closed and with nobody who points at it.  NULL: there is none. */
static struct httpd_listener *
listener_room(struct httpd *h)
{
	for (size_t i = 0; i < h->listener_count; i++)
		if (!h->listeners[i].ready && h->listeners[i].users == 0)
			return &h->listeners[i];
	return h->listener_count < HTTPD_LISTENERS_MAX ? &h->listeners[h->listener_count] : NULL;
}

/* Adds one socket; on failure it is still the caller's. */
static int
listener_open(struct httpd *h, const struct listen_socket *socket, void *tag)
{
	struct httpd_listener *l = listener_room(h);

	if (!l)
		return -ENOSPC;
	*l = (struct httpd_listener){ .h = h, .socket = *socket, .tag = tag,
		.places = socket->is_unix ? HTTPD_PLACES_LOCAL : HTTPD_PLACES_TCP };
	if (l == &h->listeners[h->listener_count])
		h->listener_count++;
	return listener_watch(l);
}

/* The same address: a port of all addresses is written without one. */
static int
socket_again(struct listen_socket *socket)
{
	static const char any[] = "[::]";
	struct listen_set set = { .count = 0 };
	struct address    a;
	const char       *text = socket->address;
	int               r;

	if (strncmp(text, any, strlen(any)) == 0)
		text += strlen(any);
	r = address_parse(text, &a, NULL, 0);
	if (!r)
		r = listen_open(&a, &set, NULL);
	if (r)
		return r;
	*socket = set.sockets[0];
	for (size_t i = 1; i < set.count; i++)
		our_fd_close(set.sockets[i].fd);
	return 0;
}

static int
listener_again(struct httpd_listener *l)
{
	int r;

	l->crowded = l->deaf = false;
	r = socket_again(&l->socket);
	if (r)
		return r;
	r = listener_watch(l);
	if (r)
		listen_close(&(struct listen_set){ .count = 1, .sockets = { l->socket } });
	return r;
}

int
httpd_listeners_again(struct httpd *h)
{
	int r = 0;

	for (size_t i = 0; i < h->listener_count && !r; i++)
		if (h->listeners[i].again)
			r = listener_again(&h->listeners[i]);
	return r;
}

/* A socket that may share its port keeps nobody from it while it does not listen. */
static int
may_share_port(const struct httpd_listener *l, int may)
{
	return setsockopt(l->socket.fd, SOL_SOCKET, SO_REUSEADDR, &may, sizeof(may)) ? -errno : 0;
}

/* The kernel keeps a port that was asked for, and takes back one that it had chosen. */
static int
listener_deafen(struct httpd_listener *l)
{
	socklen_t size = sizeof(l->heard_at);

	while (accept_one(l)) /* who came before is answered */
		;
	l->deaf = true;
	event_del(l->ready);
	if (getsockname(l->socket.fd, (struct sockaddr *)&l->heard_at, &size))
		return -errno;
	may_share_port(l, 0);
	return shutdown(l->socket.fd, SHUT_RDWR) && errno != ENOTCONN ? -errno : 0; /* ENOTCONN: it did not listen */
}

static int
listener_hear(struct httpd_listener *l)
{
	const struct sockaddr *at = (const struct sockaddr *)&l->heard_at;
	socklen_t              size = at->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(l->heard_at);
	int                    r = may_share_port(l, 1);

	if (!r && bind(l->socket.fd, at, size) && errno != EINVAL) { /* EINVAL: it is bound still */
		l->heard_at.sin6_port = 0; /* where sin_port is, too; somebody else has the one of before by now */
		r = bind(l->socket.fd, at, size) ? -errno : 0;
	}
	if (!r && (listen(l->socket.fd, LISTEN_BACKLOG) || event_add(l->ready, NULL)))
		r = -errno;
	if (r)
		return r;
	l->deaf = false;
	return listen_describe_tcp(l->socket.fd, &l->socket);
}

static void
tell(struct listen_set *told, const struct listen_socket *socket)
{
	for (size_t i = 0; i < told->count; i++)
		if (told->sockets[i].fd == socket->fd)
			told->sockets[i] = *socket;
}

int
httpd_deafen(struct httpd *h, void *tag, bool deaf, struct listen_set *told)
{
	int r = 0, result = 0;

	for (size_t i = 0; i < h->listener_count; i++) {
		struct httpd_listener *l = &h->listeners[i];

		if (!l->ready || l->tag != tag || l->socket.is_unix || l->deaf == deaf)
			continue;
		r = deaf ? listener_deafen(l) : listener_hear(l);
		result = result ? result : r;
		tell(told, &l->socket);
	}
	return result;
}

static void
listen_call(void *arg)
{
	struct httpd_call *c = arg;
	int          r = -ECANCELED;

	if (c->h->stopping || c->h->lost)
		goto out;
	r = 0;
	for (size_t i = 0; i < c->set->count && r == 0; i++)
		r = listener_open(c->h, &c->set->sockets[i], c->tag);
	if (r == 0)
		c->set->count = 0; /* ours now */
	else
		listeners_take_back(c->h, c->set);
out:
	httpd_call_finish(c, r);
}

int
httpd_listen(struct httpd *h, struct listen_set *set, void *tag)
{
	struct httpd_call c;

	httpd_call_init(&c, h);
	c.set = set;
	c.tag = tag;
	return httpd_call_run(&c, listen_call);
}

static void
unlisten_call(void *arg)
{
	struct httpd_call *c = arg;

	if (!c->h->lost && !c->tag)
		httpd_listeners_close(c->h);
	for (size_t i = 0; !c->h->lost && c->tag && i < c->h->listener_count; i++) {
		struct httpd_listener *l = &c->h->listeners[i];

		if (!l->ready || l->tag != c->tag)
			continue;
		while (!l->deaf && accept_one(l)) /* who came before the end is answered */
			;
		listener_drop(l);
	}
	httpd_call_finish(c, 0);
}

int
httpd_unlisten(struct httpd *h, void *tag)
{
	struct httpd_call c;

	httpd_call_init(&c, h);
	c.tag = tag;
	return httpd_call_run(&c, unlisten_call);
}
