/*
 * evhttp_door.c - one request on a program's own evhttp, relayed to our own server.
 *
 *     the program's loop                            component-http
 *     evhttp_door() --a socketpair, one end of it--> httpd_adopt(): a connection like any
 *     on_ready() <----HTTP text, as on the port------ other: routes, rules, jobs, windows
 *         |
 *         +--> evhttp_send_reply_start(), _chunk() ... on_drained() ... _end()
 *
 * It writes the request down again, without what concerns the connection that it came by,
 * takes the answer apart (reply_reader.c) and passes its pieces on.  At most PIECE_BYTES
 * wait for the client here; the rest waits in the socket and where it waits on the port.
 *
 * What a stranger would get wrong:
 * - evhttp does not notice that a client leaves while its reply is pending, and asking
 *   libevent for EV_READ or EV_CLOSED of that socket ends in event_errx() or in a loop
 *   that spins.  So an epoll set of our own watches both sockets, the client's for its end
 *   alone, by edge; the program's loop watches that set.
 * - A connection may be freed by libevent (a client that is gone, a timeout) or by the
 *   program (evhttp_free()).  The close callback tells; in the first case the request has
 *   been detached and is ours to free, in the second it goes with its connection.  It may
 *   come while evhttp is asked to write, hence "busy".
 * - Whatever evhttp sends enables reading, and would let it take a half-close for the end of
 *   the reply.
 * - A reply that was cut off must not end like a whole one: the connection is freed.
 * - libevent answers HTTP/1.0 with keep-alive and no length by "Content-Length: 0".
 * - A forked child has the same sockets.  Its end of the pair is closed; its epoll set,
 *   which its copy of the loop may still name, becomes an eventfd that nothing signals,
 *   since event_reinit() fails on a descriptor that is closed.
 * - The functions of libevent_extra are weak: see evhttp.c.
 *
 * Tests: tests/evhttp.t, tests/test_reply_reader.c.
 */
#include <config.h>

#include "evhttp_door.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>

#include "own_fd.h"
#include "reply_reader.h"
#include "serve.h"

#pragma weak evhttp_add_header
#pragma weak evhttp_connection_free
#pragma weak evhttp_connection_get_base
#pragma weak evhttp_connection_get_bufferevent
#pragma weak evhttp_connection_get_peer
#pragma weak evhttp_connection_set_closecb
#pragma weak evhttp_remove_header
#pragma weak evhttp_request_free
#pragma weak evhttp_request_get_command
#pragma weak evhttp_request_get_connection
#pragma weak evhttp_request_get_evhttp_uri
#pragma weak evhttp_request_get_input_buffer
#pragma weak evhttp_request_get_input_headers
#pragma weak evhttp_request_get_output_headers
#pragma weak evhttp_send_reply
#pragma weak evhttp_send_reply_chunk_with_cb
#pragma weak evhttp_send_reply_end
#pragma weak evhttp_send_reply_start
#pragma weak evhttp_uri_get_query

#define PIECE_BYTES  (32 * 1024)
#define SOCKET_BYTES (64 * 1024) /* of a reply, in the kernel */

struct relay {
	struct relay             *next, **at; /* open ones; under own_fd_hold() */
	struct evhttp_request    *request;    /* NULL: not ours any more, all is over */
	struct evhttp_connection *connection;
	struct event             *ready; /* watches epoll */
	int                       epoll, server;
	struct evbuffer          *ask;   /* what is not sent of the request */
	struct evbuffer          *piece; /* what is to be sent of the reply */
	bool                      hungup; /* the client, perhaps of its sending half alone */
	bool                      started, busy;
	struct reply_reader       reader;
	char                      buf[PIECE_BYTES];
};

enum { CLIENT, SERVER }; /* in the epoll set */

static struct relay *relays; /* under own_fd_hold() */

/* ---- its end ---- */

static void
relay_free(struct relay *r)
{
	sigset_t mask;

	if (r->ready)
		event_free(r->ready);
	own_fd_hold(&mask);
	if (r->at) {
		*r->at = r->next;
		if (r->next)
			r->next->at = r->at;
	}
	if (r->epoll >= 0)
		close(r->epoll);
	own_fd_release(&mask);
	own_fd_close(r->server);
	if (r->ask)
		evbuffer_free(r->ask);
	if (r->piece)
		evbuffer_free(r->piece);
	free(r);
}

/* The request is answered, or nobody's: what is left goes when nobody is in it. */
static void
relay_over(struct relay *r)
{
	r->request = NULL;
	if (!r->busy)
		relay_free(r);
}

static void
on_connection_closed(struct evhttp_connection *connection, void *arg)
{
	struct relay          *r = arg;
	struct evhttp_request *request = r->request;

	(void)connection;
	if (request && !evhttp_request_get_connection(request))
		evhttp_request_free(request);
	relay_over(r);
}

static void
answer(struct evhttp_request *request, int status, const char *reason, const char *text)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	struct evbuffer  *body = evbuffer_new();
	char              length[32];

	evhttp_add_header(headers, "Content-Type", ANSWER_TEXT);
	evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
	evhttp_add_header(headers, "X-Go-Pprof", "1");
	snprintf(length, sizeof(length), "%zu", strlen(text));
	evhttp_add_header(headers, "Content-Length", length);
	if (body && evhttp_request_get_command(request) != EVHTTP_REQ_HEAD)
		evbuffer_add(body, text, strlen(text));
	evhttp_send_reply(request, status, reason, body);
	if (body)
		evbuffer_free(body);
}

/* Our server has closed before its reply was whole. */
static void
relay_cut(struct relay *r)
{
	evhttp_connection_set_closecb(r->connection, NULL, NULL);
	if (r->started)
		evhttp_connection_free(r->connection); /* and the request */
	else
		answer(r->request, 503, "Service Unavailable", "too many connections, or profiling is being switched off\n");
	relay_over(r);
}

/* ---- the reply ---- */

/* After each thing sent.  Our epoll set tells of the client's end, or the next write does. */
static void
client_unread(struct relay *r)
{
	if (r->request)
		bufferevent_disable(evhttp_connection_get_bufferevent(r->connection), EV_READ);
}

static void
reply_start(struct relay *r)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(r->request);
	const char       *name, *value;

	while (reply_header(&r->reader, &name, &value))
		evhttp_add_header(headers, name, value);
	if (r->reader.chunked && r->request->major == 1 && r->request->minor == 0)
		evhttp_remove_header(evhttp_request_get_input_headers(r->request), "Connection");
	else if (r->reader.chunked && evhttp_request_get_command(r->request) == EVHTTP_REQ_HEAD)
		evhttp_add_header(headers, "Transfer-Encoding", "chunked"); /* libevent adds it with a body alone */
	r->started = true;
	evhttp_send_reply_start(r->request, r->reader.status, r->reader.reason);
	client_unread(r);
}

static void
on_drained(struct evhttp_connection *connection, void *arg)
{
	struct relay *r = arg;

	(void)connection;
	event_add(r->ready, NULL);
}

static void
reply_forward(struct relay *r, const char *p, size_t size)
{
	enum reply_part part;
	const char     *data = NULL;
	size_t          n = 0;
	bool            framed;

	while ((part = reply_next(&r->reader, &p, &size, &data, &n)) == REPLY_HEAD || part == REPLY_DATA) {
		if (part == REPLY_DATA)
			evbuffer_add(r->piece, data, n);
		else
			reply_start(r);
		if (!r->request)
			return;
	}
	if (part == REPLY_BAD) {
		relay_cut(r);
		return;
	}
	if (evbuffer_get_length(r->piece)) {
		event_del(r->ready); /* until the client has taken it */
		evhttp_send_reply_chunk_with_cb(r->request, r->piece, on_drained, r);
		client_unread(r);
	}
	if (part != REPLY_END || !r->request)
		return;
	evhttp_connection_set_closecb(r->connection, NULL, NULL);
	framed = r->request->chunked;
	evhttp_send_reply_end(r->request);
	if (framed) /* the last chunk is still to be sent; else the connection may be gone */
		client_unread(r);
	relay_over(r);
}

static void
reply_read(struct relay *r)
{
	ssize_t n = recv(r->server, r->buf, sizeof(r->buf), MSG_DONTWAIT);

	if (n > 0)
		reply_forward(r, r->buf, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		relay_cut(r);
}

/* ---- the request ---- */

static int
watch(struct relay *r, int operation, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.u32 = SERVER };

	return epoll_ctl(r->epoll, operation, r->server, &e) ? -errno : 0;
}

/* Not evbuffer_write(): this thread may not block SIGPIPE. */
static void
request_send(struct relay *r)
{
	struct evbuffer_iovec part;
	ssize_t               n = 0;

	while (n >= 0 && evbuffer_peek(r->ask, -1, NULL, &part, 1) > 0) {
		n = send(r->server, part.iov_base, part.iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0)
			evbuffer_drain(r->ask, (size_t)n);
	}
	if (n < 0 && errno == EAGAIN)
		return;
	/* All of it; or after another error it is refused already, and the answer says why. */
	evbuffer_drain(r->ask, evbuffer_get_length(r->ask));
	watch(r, EPOLL_CTL_MOD, EPOLLIN);
}

static void
on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct epoll_event e[2];
	struct relay      *r = arg;
	int                n = epoll_wait(fd, e, 2, 0);

	(void)what;
	r->busy = true;
	for (int i = 0; i < n && r->request; i++) {
		if (e[i].data.u32 == CLIENT)
			r->hungup = true;
		else if (e[i].events & EPOLLOUT)
			request_send(r);
		else
			reply_read(r);
	}
	if (r->request && r->hungup && evbuffer_get_length(r->ask) == 0)
		shutdown(r->server, SHUT_WR); /* it is told as the client did it; again does no harm */
	r->busy = false;
	if (!r->request)
		relay_free(r);
}

static const char *
method_name(enum evhttp_cmd_type command)
{
	switch (command) {
	case EVHTTP_REQ_GET: return "GET";
	case EVHTTP_REQ_POST: return "POST";
	case EVHTTP_REQ_HEAD: return "HEAD";
	case EVHTTP_REQ_PUT: return "PUT";
	case EVHTTP_REQ_DELETE: return "DELETE";
	case EVHTTP_REQ_OPTIONS: return "OPTIONS";
	case EVHTTP_REQ_TRACE: return "TRACE";
	case EVHTTP_REQ_CONNECT: return "CONNECT";
	default: return "PATCH";
	}
}

/* Of the connection that it came by, or written anew. */
static bool
is_of_connection(const char *name)
{
	static const char *const all[] = { "Connection", "Content-Length", "Expect", "Keep-Alive", "Proxy-Connection", "TE",
		"Trailer", "Transfer-Encoding", "Upgrade" };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcasecmp(name, all[i]))
			return true;
	return false;
}

static void
request_write(struct relay *r, const char *path)
{
	const char      *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(r->request));
	struct evbuffer *body = evhttp_request_get_input_buffer(r->request);
	struct evkeyval *header = evhttp_request_get_input_headers(r->request)->tqh_first;

	evbuffer_add_printf(r->ask, "%s %s%s%s HTTP/1.1\r\n", method_name(evhttp_request_get_command(r->request)), path,
		query ? "?" : "", query ? query : "");
	for (; header; header = header->next.tqe_next)
		if (!is_of_connection(header->key))
			evbuffer_add_printf(r->ask, "%s: %s\r\n", header->key, header->value);
	evbuffer_add_printf(r->ask, "Connection: close\r\nContent-Length: %zu\r\n\r\n", evbuffer_get_length(body));
	evbuffer_add_buffer(r->ask, body);
}

/* Was it asked at a loopback address?  Then Host is looked at, whatever else the listener
 * hears; where it cannot be told, too.  A unix socket is out of reach of a page. */
static bool
is_loopback(int fd)
{
	union {
		struct sockaddr         any;
		struct sockaddr_in      in;
		struct sockaddr_in6     in6;
		struct sockaddr_storage room;
	} a;
	socklen_t size = sizeof(a);

	if (fd < 0 || getsockname(fd, &a.any, &size))
		return true;
	if (a.any.sa_family == AF_INET)
		return ntohl(a.in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	if (a.any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&a.in6.sin6_addr) ||
		       (IN6_IS_ADDR_V4MAPPED(&a.in6.sin6_addr) && a.in6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
	return false;
}

static int
epoll_open(struct relay *r, int client)
{
	struct epoll_event e = { .events = EPOLLRDHUP | EPOLLET, .data.u32 = CLIENT };
	sigset_t           mask;
	int                fd;

	own_fd_hold(&mask);
	fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd >= 0 && fd <= STDERR_FILENO) {
		r->epoll = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		close(fd);
		fd = r->epoll;
	}
	r->epoll = fd;
	r->next = relays;
	r->at = &relays;
	if (relays)
		relays->at = &r->next;
	relays = r;
	own_fd_release(&mask);
	if (fd < 0)
		return -EMFILE;
	if (client >= 0)
		epoll_ctl(fd, EPOLL_CTL_ADD, client, &e); /* without it a client that leaves is noticed late */
	return watch(r, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT);
}

/* Our server gets its end of a pair. */
static int
server_open(struct relay *r, int client, const char *prefix)
{
	char        peer[HTTPD_PEER_MAX], *address = NULL;
	ev_uint16_t port = 0;
	int         fds[2], size = SOCKET_BYTES, err;

	err = own_fd_socketpair(fds);
	if (err)
		return err;
	evhttp_connection_get_peer(r->connection, &address, &port);
	if (address && port)
		snprintf(peer, sizeof(peer), strchr(address, ':') ? "[%s]:%u" : "%s:%u", address, port);
	else
		snprintf(peer, sizeof(peer), "unix");
	setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	r->server = fds[0];
	err = profiler_relay(fds[1], is_loopback(client), peer, prefix);
	if (err)
		own_fd_close(fds[1]);
	return err;
}

static int
relay_open(struct relay *r, const char *path, const char *prefix)
{
	int client = bufferevent_getfd(evhttp_connection_get_bufferevent(r->connection)), err;

	r->epoll = r->server = -1;
	reply_reader_init(&r->reader, evhttp_request_get_command(r->request) == EVHTTP_REQ_HEAD);
	r->ask = evbuffer_new();
	r->piece = evbuffer_new();
	if (!r->ask || !r->piece)
		return -ENOMEM;
	request_write(r, path);
	err = server_open(r, client, prefix);
	if (!err)
		err = epoll_open(r, client);
	if (err)
		return err;
	r->ready = event_new(evhttp_connection_get_base(r->connection), r->epoll, EV_READ | EV_PERSIST, on_ready, r);
	return !r->ready || event_add(r->ready, NULL) ? -ENOMEM : 0;
}

void
evhttp_door(struct evhttp_request *request, const char *path, const char *prefix)
{
	struct relay *r = calloc(1, sizeof(*r));
	int           err = -ENOMEM;

	if (r) {
		r->request = request;
		r->connection = evhttp_request_get_connection(request);
		err = relay_open(r, path, prefix);
		if (!err) {
			evhttp_connection_set_closecb(r->connection, on_connection_closed, r);
			return;
		}
		relay_free(r);
	}
	answer(request, 503, "Service Unavailable", err == -ENOTCONN ? "profiling is off\n" :
		"no memory or no descriptors are left for this request\n");
}

void
evhttp_door_forked(void)
{
	for (struct relay *r = relays; r; r = r->next) {
		int quiet = eventfd(0, EFD_CLOEXEC);

		r->server = -1; /* closed by own_fd.c */
		if (quiet < 0)
			continue;
		dup3(quiet, r->epoll, O_CLOEXEC);
		close(quiet);
	}
}
