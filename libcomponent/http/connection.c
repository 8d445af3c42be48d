/*
 * connection.c - one connection: accepted, read, answered, flushed, closed.
 *
 *     accept --> READ --> BUSY --> FLUSH --> IDLE --> READ ...
 *                  |        |        |
 *                refused  client   Connection: close --> closed, or LINGER when
 *                         left                           input was left unread
 *
 * One timer serves all states, meaning another limit in each: the whole request
 * (READ), the wait for the next (IDLE), a reply without progress (BUSY with
 * output, FLUSH), the client's last look (LINGER).  BUSY without output has none:
 * a profile may take two hours.
 *
 * Reading goes on while a reply is pending: that is how a client that leaves is
 * noticed at once.  FIN (closed or half-closed) reports a hangup, a reset reports
 * gone.  Who sends much meanwhile is closed, for were he not read any more, his reset
 * would not be seen.  A request that begins after FIN must be answered at once, or its
 * client is taken to be gone: nobody could tell later that it is.
 *
 * What a stranger would get wrong: a descriptor at EOF stays readable, so the loop would
 * spin; without its event a reset would stay unseen for as long as the reply takes.  So
 * both events are by edge from then on, as libevent wants them of one kind.  EV_CLOSED
 * would not do, for after a reset epoll reports EPOLLERR, which libevent turns into
 * EV_READ|EV_WRITE.
 *
 * A handler may answer while conn_feed() is on the stack.  Output is written by
 * the loop alone, and the next pipelined request is looked at when it is out: no
 * recursion however many there are.
 *
 * Tests: tests/http/protocol.t, tests/cpu/windows.t, tests/http/limits.t.
 */
#include <config.h>

#include "connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "request.h"
#include "server.h"


#define READ_BYTES (16 * 1024) /* at a time, so that one client does not starve others */

static void conn_feed(struct httpd_conn *c);

static void
timer_set(struct httpd_conn *c, unsigned seconds)
{
	if (seconds)
		httpd_timer_set(c->h, c->timer, seconds * 1000);
	else
		evtimer_del(c->timer);
}

/* There may be a place now for who waits at a listener. */
static void
place_made(const struct httpd_conn *c)
{
	struct httpd *h = c->h;

	for (size_t i = 0; i < h->listener_count; i++) {
		struct httpd_listener *l = &h->listeners[i];

		if (l->crowded && l->ready && l->places == c->listener->places)
			event_active(l->rest, EV_TIMEOUT, 0);
	}
}

static void
state_set(struct httpd_conn *c, enum httpd_conn_state state)
{
	static const unsigned seconds[] = {
		[HTTPD_CONN_IDLE] = HTTPD_IDLE_SECONDS_MAX,
		[HTTPD_CONN_READ] = HTTPD_HEADER_SECONDS_MAX,
		[HTTPD_CONN_FLUSH] = ANSWER_STALL_SECONDS,
		[HTTPD_CONN_BUSY] = 0,
		[HTTPD_CONN_LINGER] = HTTPD_LINGER_SECONDS_MAX,
	};

	c->state = state;
	timer_set(c, seconds[state]);
	c->since_ns = clock_ns(CLOCK_MONOTONIC);
	if (state != HTTPD_CONN_READ)
		place_made(c);
}

/* The request outlives its connection until somebody replies to it. */
static void
request_orphan(struct httpd_conn *c)
{
	struct httpd_request *r = c->request;

	if (!r)
		return;
	c->request = NULL;
	r->conn = NULL;
	answer_lost(&r->answer); /* may end it, which frees the request */
}

void
httpd_stopped_check(struct httpd *h)
{
	if (h->stopping && !h->lost && !h->open[HTTPD_PLACES_TCP] && !h->open[HTTPD_PLACES_LOCAL])
		event_base_loopbreak(h->base);
}

void
httpd_conn_close(struct httpd_conn *c)
{
	if (c->state == HTTPD_CONN_FREE)
		return;
	c->state = HTTPD_CONN_FREE;
	c->h->open[c->listener->places]--;
	httpd_event_free(&c->readable);
	httpd_event_free(&c->writable);
	httpd_event_free(&c->timer);
	if (c->in)
		evbuffer_free(c->in);
	if (c->out)
		evbuffer_free(c->out);
	c->in = c->out = NULL;
	httpd_request_free(c->incoming);
	c->incoming = NULL;
	our_fd_kept_close(&c->fd);
	request_orphan(c);
	place_made(c);
	c->listener->users--;
	httpd_stopped_check(c->h);
}

void
httpd_conn_forget(struct httpd_conn *c)
{
	if (c->state != HTTPD_CONN_FREE) {
		c->h->open[c->listener->places]--;
		c->listener->users--;
	}
	c->state = HTTPD_CONN_FREE;
	our_fd_kept_close(&c->fd);
	httpd_request_free(c->incoming); /* it holds the listener's place */
	c->incoming = NULL;
	request_orphan(c);
}

/* After a reply: the next request, or the end. */
static void
conn_flushed(struct httpd_conn *c)
{
	if (c->keep_alive && !c->h->stopping && (!c->eof || evbuffer_get_length(c->in))) {
		if (!c->eof)
			event_add(c->readable, NULL);
		state_set(c, evbuffer_get_length(c->in) ? HTTPD_CONN_READ : HTTPD_CONN_IDLE);
		conn_feed(c);
		return;
	}
	if (!c->linger || c->eof) {
		httpd_conn_close(c);
		return;
	}
	/* Closing with input unread resets the connection, and the client may lose
	 * the answer that told it why. */
	shutdown(c->fd.fd, SHUT_WR);
	evbuffer_drain(c->in, evbuffer_get_length(c->in));
	state_set(c, HTTPD_CONN_LINGER);
}

void
httpd_conn_replied(struct httpd_conn *c)
{
	c->request = NULL;
	state_set(c, HTTPD_CONN_FLUSH);
	httpd_conn_output(c);
}

void
httpd_conn_output(struct httpd_conn *c)
{
	if (!evbuffer_get_length(c->out) && c->state != HTTPD_CONN_FLUSH)
		return;
	event_add(c->writable, NULL);
	if (!evtimer_pending(c->timer, NULL))
		timer_set(c, ANSWER_STALL_SECONDS);
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct httpd_conn *c = arg;
	struct answer     *a = c->request ? &c->request->answer : NULL;
	answer_fn         *drain;
	int                n;

	(void)what;
	if (evbuffer_get_length(c->out)) {
		n = evbuffer_write(c->out, fd);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			httpd_conn_close(c);
			return;
		}
		if (c->state != HTTPD_CONN_READ) { /* 100 Continue does not prolong the client's time */
			timer_set(c, ANSWER_STALL_SECONDS);
			c->since_ns = clock_ns(CLOCK_MONOTONIC);
		}
	}
	if (a && a->on_drain && evbuffer_get_length(c->out) <= ANSWER_QUEUE_BYTES_MAX / 2) {
		drain = a->on_drain;
		a->on_drain = NULL;
		drain(a->arg); /* may end the answer: c is looked up anew */
	}
	if (c->state == HTTPD_CONN_FREE)
		return;
	if (evbuffer_get_length(c->out)) {
		if (c->eof) /* by edge: until EAGAIN */
			event_active(c->writable, EV_WRITE, 0);
		return;
	}
	event_del(c->writable);
	if (c->state == HTTPD_CONN_FLUSH)
		conn_flushed(c);
	else if (c->state == HTTPD_CONN_BUSY)
		timer_set(c, 0);
}

/* Whatever it asks for, and of whichever version: it gets one of 1.1, with a body. */
static void
refuse(struct httpd_conn *c, struct httpd_request *r, int status)
{
	static const struct answer_header headers[] = {
		{ "Content-Type", ANSWER_TEXT },
		{ "X-Content-Type-Options", "nosniff" },
		{ NULL, NULL },
	};
	char text[64];

	c->linger = true;
	c->keep_alive = false;
	r->minor = 1;
	r->answer.ask.method = ASK_OTHER;
	snprintf(text, sizeof(text), "%d %s\n", status, answer_reason(status));
	answer_whole(&r->answer, status, headers, text, strlen(text));
}

/* Who has left is answered at once or not at all. */
static void
conn_ask(struct httpd_conn *c)
{
	c->h->options.on_request(&c->request->answer, c->h->options.arg);
	if (c->eof && c->state == HTTPD_CONN_BUSY)
		httpd_conn_close(c);
}

/* Hands the next request over, if it is all there. */
static void
conn_feed(struct httpd_conn *c)
{
	struct httpd_request *r = NULL;
	int                   status;

	if (c->state != HTTPD_CONN_READ)
		return;
	status = httpd_request_read(c, &r);
	if (status == -EAGAIN && !c->eof) {
		httpd_conn_output(c); /* 100 Continue */
		return;
	}
	if (status < 0) {
		httpd_conn_close(c);
		return;
	}
	r->conn = c;
	c->request = r;
	if (status > 0) {
		refuse(c, r, status);
		return;
	}
	c->keep_alive = r->keep_alive;
	state_set(c, HTTPD_CONN_BUSY);
	conn_ask(c);
}

/* After FIN there is news only once more: the client is gone altogether. */
static void
on_news(evutil_socket_t fd, short what, void *arg)
{
	struct pollfd now = { .fd = fd };

	(void)what;
	if (poll(&now, 1, 0) > 0)
		httpd_conn_close(arg);
}

/* False: it could not be watched, and is closed. */
static bool
watch_by_edge(struct httpd_conn *c)
{
	bool writing = event_pending(c->writable, EV_WRITE, NULL);
	int  fd = c->fd.fd;

	event_del(c->readable);
	event_del(c->writable);
	if (event_assign(c->readable, c->h->base, fd, EV_READ | EV_ET | EV_PERSIST, on_news, c) ||
		event_assign(c->writable, c->h->base, fd, EV_WRITE | EV_ET | EV_PERSIST, on_writable,
			c) ||
		event_add(c->readable, NULL) || (writing && event_add(c->writable, NULL))) {
		httpd_conn_close(c);
		return false;
	}
	return true;
}

/* FIN.  What was asked before it is still answered. */
static void
conn_eof(struct httpd_conn *c)
{
	struct httpd_request *r = c->request;
	answer_fn            *hangup;

	c->eof = true;
	if (c->state != HTTPD_CONN_BUSY && c->state != HTTPD_CONN_FLUSH) {
		httpd_conn_close(c);
		return;
	}
	if (watch_by_edge(c) && c->state == HTTPD_CONN_BUSY) {
		hangup = r->answer.on_hangup;
		r->answer.on_hangup = NULL;
		if (hangup)
			hangup(r->answer.arg);
	}
}

/* More than we keep behind a request that is being answered. */
static void
conn_overfull(struct httpd_conn *c)
{
	if (c->state == HTTPD_CONN_BUSY)
		httpd_conn_close(c);
	else
		event_del(c->readable); /* what is being written tells of a reset; conn_flushed() reads on */
}

static void
conn_read(struct httpd_conn *c)
{
	int n = evbuffer_read(c->in, c->fd.fd, READ_BYTES);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		httpd_conn_close(c);
		return;
	}
	if (n == 0) {
		conn_eof(c);
		return;
	}
	if (c->linger) /* nobody will look at it */
		evbuffer_drain(c->in, evbuffer_get_length(c->in));
	if (c->state == HTTPD_CONN_IDLE)
		state_set(c, HTTPD_CONN_READ);
	if (c->state == HTTPD_CONN_READ)
		conn_feed(c);
	else if (evbuffer_get_length(c->in) > HTTPD_PIPELINE_BYTES_MAX)
		conn_overfull(c);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	conn_read(arg);
}

void
httpd_conn_move(struct httpd_conn *c)
{
	if (c->state == HTTPD_CONN_FLUSH)
		on_writable(c->fd.fd, EV_WRITE, c);
	else
		conn_read(c);
}

static void
on_timeout(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	httpd_conn_close(arg);
}

/* A client whose machine or network is gone sends no FIN; a window may be two hours. */
static void
keep_alive_set(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, HTTPD_PROBE_SECONDS },
		{ IPPROTO_TCP, TCP_KEEPINTVL, HTTPD_PROBE_SECONDS / 4 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 4 },
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(options[i].value));
}

/* False: there is no memory, and it is closed. */
static bool
conn_begin(struct httpd_conn *c, struct httpd_listener *l)
{
	int fd = c->fd.fd;

	c->h = l->h;
	c->listener = l;
	l->users++;
	c->scanned = 0;
	c->eof = c->keep_alive = false;
	c->incoming = c->request = NULL;
	c->readable = event_new(l->h->base, fd, EV_READ | EV_PERSIST, on_readable, c);
	c->writable = event_new(l->h->base, fd, EV_WRITE | EV_PERSIST, on_writable, c);
	c->timer = evtimer_new(l->h->base, on_timeout, c);
	c->state = HTTPD_CONN_READ;
	l->h->open[l->places]++;
	if (!c->in || !c->out || !c->readable || !c->writable || !c->timer || event_add(c->readable, NULL)) {
		httpd_conn_close(c);
		return false;
	}
	state_set(c, HTTPD_CONN_READ);
	return true;
}

/* The address that the client has asked for; where it cannot be told, any page may have sent it. */
static bool
is_at_loopback(int fd)
{
	struct sockaddr_storage a;
	socklen_t               size = sizeof(a);

	return getsockname(fd, (struct sockaddr *)&a, &size) || listen_is_loopback((struct sockaddr *)&a);
}

void
httpd_conn_open(struct httpd_conn *c, struct httpd_listener *l, const struct sockaddr_storage *peer)
{
	int one = 1, fd = c->fd.fd;

	ask_peer_format(peer, c->peer);
	c->loopback = false;
	if (!l->socket.is_unix) {
		c->loopback = l->socket.loopback || is_at_loopback(fd);
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		keep_alive_set(fd);
	}
	c->linger = false;
	c->in = evbuffer_new();
	c->out = evbuffer_new();
	conn_begin(c, l);
}

void
httpd_conn_resume(struct httpd_conn *c, struct httpd_listener *l, const struct httpd_moved *m, int status)
{
	struct httpd_request *r = m->request;

	memcpy(c->peer, m->peer, sizeof(c->peer));
	c->in = m->in;
	c->out = m->out;
	c->linger = m->linger || evbuffer_get_length(m->in) > 0;
	if (!conn_begin(c, l)) {
		httpd_request_free(r);
		return;
	}
	c->eof = m->eof;
	if (c->eof && !watch_by_edge(c)) {
		httpd_request_free(r);
		return;
	}
	r->conn = c;
	c->request = r;
	if (status) {
		refuse(c, r, status);
		return;
	}
	state_set(c, HTTPD_CONN_BUSY);
	httpd_conn_output(c);
	conn_ask(c);
}
