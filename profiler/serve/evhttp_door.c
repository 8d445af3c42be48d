/*
 * evhttp_door.c - one request on a program's own evhttp, answered by our server's thread.
 *
 *     the program's loop                              component-http
 *     evhttp_door_ask(): a copy of what is asked ---> on_news(): routes, as for the port
 *     on_ready() <--a byte-- queue, under a lock <--- begin, write, end or abort of the answer
 *         |
 *         +--> evhttp_send_reply_start(), _chunk() ... on_drained() ... _end()
 *              the client has left, has taken some -> on_news(): on_hangup, on_gone, on_drain
 *
 * Both sides call each other by posting: the loop by httpd_post_at(), the server by a byte
 * through a socketpair, which says no more than "look".  A struct door is freed by whichever
 * is done with it last.  At most ANSWER_QUEUE_BYTES_MAX wait for the client, and PIECE_BYTES
 * of them in evhttp; whoever writes more is told how much waits (answer.h).
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
 * - The server may be stopped and freed while its last bytes wait here.  Until its answer is
 *   over it is there, since a stop waits for that; afterwards nothing is posted to it.
 * - A forked child has the same sockets.  Both ends of the pair are closed; the epoll set,
 *   which its copy of the loop may still name, becomes an eventfd that nothing signals,
 *   since event_reinit() fails on a descriptor that is closed.  The server's thread, which
 *   may have been writing, is not there: what is queued is left alone.
 * - The functions of libevent_extra are weak: see evhttp.c.
 *
 * Tests: tests/serve/evhttp.t.
 */
#include <config.h>

#include "evhttp_door.h"

#include <errno.h>
#include <fcntl.h>
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

#include "evhttp_ask.h"
#include "our_fd.h"
#include "profiler.h"
#include "reply.h"
#include "routes.h"

#pragma weak evhttp_add_header
#pragma weak evhttp_clear_headers
#pragma weak evhttp_connection_free
#pragma weak evhttp_connection_get_base
#pragma weak evhttp_connection_get_bufferevent
#pragma weak evhttp_connection_set_closecb
#pragma weak evhttp_remove_header
#pragma weak evhttp_request_free
#pragma weak evhttp_request_get_command
#pragma weak evhttp_request_get_connection
#pragma weak evhttp_request_get_input_headers
#pragma weak evhttp_request_get_output_headers
#pragma weak evhttp_send_reply
#pragma weak evhttp_send_reply_chunk_with_cb
#pragma weak evhttp_send_reply_end
#pragma weak evhttp_send_reply_start

#define PIECE_BYTES (32 * 1024)
#define BUSY_TEXT   "too many connections, or profiling is being switched off\n"

/* For the server's thread. */
enum news { ASKED = 1, HANGUP = 2, GONE = 4, DRAINED = 8 };

struct door {
	struct answer         answer; /* first; the server's thread's until it is over */
	struct profiler_asked server; /* there until then */
	struct evhttp_ask    *asked;  /* answer.ask's strings */

	/* The program's loop. */
	struct door              *next, **at; /* open ones; under our_fd_hold() */
	struct evhttp_request    *request;    /* NULL: not ours any more, all is over */
	struct evhttp_connection *connection;
	struct event             *ready;      /* watches epoll; off while a piece is on its way */
	struct evbuffer          *piece;      /* what is to be sent next */
	int                       epoll;
	bool                      started, busy;
	bool                      forked;     /* in a child: of the rest nothing is to be looked at */

	pthread_mutex_t     lock; /* the rest */
	struct our_fd_kept  ends[2]; /* a byte written to the second wakes the loop, which watches the first */
	bool                woken;   /* there is one */
	enum news           news;
	struct httpd_posted posting; /* posted: on_news() is called, or at work */
	bool                posted;
	int                 status;  /* of the answer; 0: it has not begun */
	bool                chunked; /* its size is not known */
	struct evkeyvalq    headers; /* of it; once it has begun they stay */
	struct evbuffer    *queue;   /* of it, for the loop */
	size_t              flying;  /* bytes that evhttp has of it */
	bool                above;   /* half of what may wait, so the server is told when that is less */
	bool                broken;  /* it is not whole and never will be */
	bool                ended;   /* it is over */
	bool                closed;  /* the loop is done */
};

enum { CLIENT, SERVER }; /* in the epoll set */

static struct door     *doors; /* under our_fd_hold() */
static _Atomic unsigned open_count;

static void
door_free(struct door *d)
{
	if (!d->forked) {
		if (d->queue)
			evbuffer_free(d->queue);
		evhttp_clear_headers(&d->headers);
	}
	pthread_mutex_destroy(&d->lock);
	evhttp_ask_free(d->asked);
	free(d);
}

/* ---- the answer, on the server's thread ---- */

/* With the lock held.  What the daemon has closed may be its own by now. */
static void
loop_wake(struct door *d)
{
	if (!d->woken && our_fd_is_kept(&d->ends[1], NULL))
		d->woken = send(d->ends[1].fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

static void
door_begin(struct answer *a, int status, const struct answer_header *headers, int64_t size)
{
	struct door *d = (struct door *)a;
	char         text[ANSWER_DATE_BYTES];

	pthread_mutex_lock(&d->lock);
	for (; headers->name; headers++)
		evhttp_add_header(&d->headers, headers->name, headers->value);
	answer_date(text);
	evhttp_add_header(&d->headers, "Date", text);
	snprintf(text, sizeof(text), "%lld", (long long)size);
	if (size >= 0)
		evhttp_add_header(&d->headers, "Content-Length", text);
	d->chunked = size < 0;
	d->status = status;
	pthread_mutex_unlock(&d->lock);
}

static int64_t
door_write(struct answer *a, const void *data, size_t size)
{
	struct door *d = (struct door *)a;
	size_t       queued;

	if (a->ask.method == ASK_HEAD)
		return 0;
	pthread_mutex_lock(&d->lock);
	if (!d->closed) {
		d->broken = evbuffer_add(d->queue, data, size) || d->broken;
		loop_wake(d);
	}
	queued = d->closed ? 0 : evbuffer_get_length(d->queue) + d->flying;
	d->above = queued > ANSWER_QUEUE_BYTES_MAX / 2;
	pthread_mutex_unlock(&d->lock);
	return (int64_t)queued;
}

static void
door_end(struct answer *a)
{
	struct door *d = (struct door *)a;
	bool         last;

	pthread_mutex_lock(&d->lock);
	d->ended = true;
	loop_wake(d);
	last = d->closed && !d->posted;
	pthread_mutex_unlock(&d->lock);
	if (last)
		door_free(d);
}

static void
door_abort(struct answer *a)
{
	struct door *d = (struct door *)a;

	pthread_mutex_lock(&d->lock);
	d->broken = true;
	pthread_mutex_unlock(&d->lock);
	door_end(a);
}

static const struct answer_sink sink = { door_begin, door_write, door_end, door_abort };

/* As httpd refuses what it cannot read, or what is too long. */
static void
refuse(struct answer *a, int status)
{
	char text[64];
	int  n = snprintf(text, sizeof(text), "%d %s\n", status, answer_reason(status));

	reply_text(a, status, ANSWER_TEXT, text, (size_t)n);
}

static void
on_asked(struct door *d)
{
	struct ask *ask = &d->answer.ask;
	int         refused = d->asked->refused;
	size_t      max = refused ? 0 : routes_body_max(ask, d->server.serve);

	if (max && ask->body_size > max)
		refused = 413;
	if (max == 0)
		ask->body_size = 0; /* nobody wants it */
	if (refused)
		refuse(&d->answer, refused);
	else
		routes_on_request(&d->answer, d->server.serve);
}

static void
news_tell(struct answer *a, answer_fn **at)
{
	answer_fn *fn = *at;

	*at = NULL;
	if (fn)
		fn(a->arg);
}

/* While it is "posted" the loop leaves the door to us; ours alone can make the answer be over. */
static void
on_news(void *arg)
{
	struct door *d = arg;
	enum news    news;
	bool         last;

	for (;;) {
		pthread_mutex_lock(&d->lock);
		news = d->news;
		d->news = 0;
		d->posted = news != 0;
		last = !news && d->closed && d->ended;
		pthread_mutex_unlock(&d->lock);
		if (!news)
			break;
		if ((news & ASKED) && (news & GONE))
			door_abort(&d->answer);
		else if (news & ASKED)
			on_asked(d);
		if ((news & HANGUP) && !d->ended)
			news_tell(&d->answer, &d->answer.on_hangup);
		if ((news & DRAINED) && !d->ended)
			news_tell(&d->answer, &d->answer.on_drain);
		if ((news & GONE) && !d->ended)
			answer_lost(&d->answer);
	}
	if (last)
		door_free(d);
}

/* ---- its end, on the program's loop ---- */

/* With the lock held.  An answer that is over hears nothing more: its server may be gone. */
static void
tell(struct door *d, enum news news)
{
	bool post = !d->posted;

	if (d->ended)
		return;
	d->news |= news;
	d->posted = true;
	if (post)
		httpd_post_at(d->server.httpd, &d->posting, on_news, d);
}

static void
door_close(struct door *d)
{
	sigset_t mask;
	bool     last;

	if (d->ready)
		event_free(d->ready);
	if (d->piece)
		evbuffer_free(d->piece);
	pthread_mutex_lock(&d->lock);
	for (int i = 0; i < 2; i++) /* as long as it is listed, for a child */
		our_fd_kept_close(&d->ends[i]);
	pthread_mutex_unlock(&d->lock);
	our_fd_hold(&mask);
	if (d->at) {
		*d->at = d->next;
		if (d->next)
			d->next->at = d->at;
	}
	if (d->epoll >= 0)
		close(d->epoll);
	our_fd_release(&mask);
	open_count--;
	pthread_mutex_lock(&d->lock);
	d->closed = true;
	tell(d, GONE);
	last = !d->posted && d->ended;
	pthread_mutex_unlock(&d->lock);
	if (last)
		door_free(d);
}

/* The request is answered, or nobody's: what is left goes when nobody is in it. */
static void
door_over(struct door *d)
{
	d->request = NULL;
	if (!d->busy)
		door_close(d);
}

static void
on_connection_closed(struct evhttp_connection *connection, void *arg)
{
	struct door           *d = arg;
	struct evhttp_request *request = d->request;

	(void)connection;
	if (request && !evhttp_request_get_connection(request))
		evhttp_request_free(request);
	door_over(d);
}

static void
reply_now(struct evhttp_request *request, const char *text)
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
	evhttp_send_reply(request, 503, answer_reason(503), body);
	if (body)
		evbuffer_free(body);
}

/* Its answer ends before it is whole. */
static void
door_cut(struct door *d)
{
	evhttp_connection_set_closecb(d->connection, NULL, NULL);
	if (d->started)
		evhttp_connection_free(d->connection); /* and the request */
	else
		reply_now(d->request, BUSY_TEXT);
	door_over(d);
}

/* ---- the reply, on the program's loop ---- */

/* After each thing sent.  Our epoll set tells of the client's end, or the next write does. */
static void
client_unread(struct door *d)
{
	if (d->request)
		bufferevent_disable(evhttp_connection_get_bufferevent(d->connection), EV_READ);
}

static void
reply_start(struct door *d)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(d->request);

	for (struct evkeyval *header = d->headers.tqh_first; header; header = header->next.tqe_next)
		evhttp_add_header(headers, header->key, header->value);
	if (d->chunked && d->request->major == 1 && d->request->minor == 0)
		evhttp_remove_header(evhttp_request_get_input_headers(d->request), "Connection");
	else if (d->chunked && d->answer.ask.method == ASK_HEAD)
		evhttp_add_header(headers, "Transfer-Encoding", "chunked"); /* libevent adds it with a body alone */
	d->started = true;
	evhttp_send_reply_start(d->request, d->status, answer_reason(d->status));
	client_unread(d);
}

static void
on_drained(struct evhttp_connection *connection, void *arg)
{
	struct door *d = arg;

	(void)connection;
	pthread_mutex_lock(&d->lock);
	d->flying = 0;
	pthread_mutex_unlock(&d->lock);
	event_add(d->ready, NULL);
	event_active(d->ready, EV_READ, 1);
}

static void
reply_end(struct door *d)
{
	bool framed = d->request->chunked;

	evhttp_connection_set_closecb(d->connection, NULL, NULL);
	evhttp_send_reply_end(d->request);
	if (framed) /* the last chunk is still to be sent; else the connection may be gone */
		client_unread(d);
	door_over(d);
}

/* Takes what there is of the answer, a piece at a time. */
static void
reply_forward(struct door *d)
{
	bool begun, cut, last;

	pthread_mutex_lock(&d->lock);
	d->woken = false;
	begun = d->status != 0;
	cut = evbuffer_remove_buffer(d->queue, d->piece, PIECE_BYTES) < 0 || d->broken;
	d->flying = evbuffer_get_length(d->piece);
	last = d->ended && evbuffer_get_length(d->queue) == 0;
	if (d->above && evbuffer_get_length(d->queue) + d->flying <= ANSWER_QUEUE_BYTES_MAX / 2) {
		d->above = false;
		tell(d, DRAINED);
	}
	pthread_mutex_unlock(&d->lock);
	if (cut) {
		door_cut(d);
		return;
	}
	if (begun && !d->started)
		reply_start(d);
	if (d->request && evbuffer_get_length(d->piece)) {
		event_del(d->ready); /* until the client has taken it */
		evhttp_send_reply_chunk_with_cb(d->request, d->piece, on_drained, d);
		client_unread(d);
	}
	if (d->request && last)
		reply_end(d);
}

static void
on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct epoll_event e[2];
	struct door       *d = arg;
	int                n;
	char               bytes[8];

	(void)what;
	if (d->forked)
		return;
	n = epoll_wait(fd, e, 2, 0);
	d->busy = true;
	for (int i = 0; i < n; i++) {
		if (e[i].data.u32 == SERVER) {
			recv(d->ends[0].fd, bytes, sizeof(bytes), MSG_DONTWAIT);
			continue;
		}
		pthread_mutex_lock(&d->lock);
		tell(d, HANGUP); /* perhaps of its sending half alone */
		pthread_mutex_unlock(&d->lock);
	}
	reply_forward(d);
	d->busy = false;
	if (!d->request)
		door_close(d);
}

/* ---- the request, on the program's loop ---- */

static struct door *
door_new(struct evhttp_request *request, const char *path, const char *prefix)
{
	struct door *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->asked = evhttp_ask_copy(request, path, prefix);
	if (!d->asked) {
		free(d);
		return NULL;
	}
	d->answer = (struct answer){ .sink = &sink, .ask = d->asked->ask };
	d->request = request;
	d->connection = evhttp_request_get_connection(request);
	d->epoll = -1;
	d->ends[0].fd = -1;
	d->ends[1].fd = -1;
	d->headers.tqh_last = &d->headers.tqh_first;
	pthread_mutex_init(&d->lock, NULL);
	open_count++;
	return d;
}

/* Both ends of the pair, and the epoll set, which a child closes by the list of doors. */
static int
descriptors_open(struct door *d)
{
	sigset_t mask;
	int      fds[2], fd, r = our_fd_socketpair(fds);

	if (r)
		return r;
	our_fd_hold(&mask);
	fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd >= 0 && fd <= STDERR_FILENO) {
		d->epoll = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		close(fd);
		fd = d->epoll;
	}
	d->epoll = fd;
	for (int i = 0; i < 2; i++) {
		our_fd_keep(&d->ends[i], fds[i]);
		our_fd_forget(fds[i]);
	}
	d->next = doors;
	d->at = &doors;
	if (doors)
		doors->at = &d->next;
	doors = d;
	our_fd_release(&mask);
	return fd < 0 ? -EMFILE : 0;
}

static int
door_open(struct door *d)
{
	int                client = bufferevent_getfd(evhttp_connection_get_bufferevent(d->connection));
	struct epoll_event leaves = { .events = EPOLLRDHUP | EPOLLET, .data.u32 = CLIENT };
	struct epoll_event wakes = { .events = EPOLLIN, .data.u32 = SERVER };
	int                r = descriptors_open(d);

	if (r)
		return r;
	if (client >= 0)
		epoll_ctl(d->epoll, EPOLL_CTL_ADD, client, &leaves); /* without it a client that leaves is noticed late */
	if (epoll_ctl(d->epoll, EPOLL_CTL_ADD, d->ends[0].fd, &wakes))
		return -errno;
	d->queue = evbuffer_new();
	d->piece = evbuffer_new();
	d->ready = event_new(evhttp_connection_get_base(d->connection), d->epoll, EV_READ | EV_PERSIST, on_ready, d);
	if (!d->queue || !d->piece || !d->ready || event_add(d->ready, NULL))
		return -ENOMEM;
	d->news = ASKED;
	d->posted = true;
	return profiler_ask(open_count, &d->posting, on_news, d, &d->server);
}

void
evhttp_door_ask(struct evhttp_request *request, const char *path, const char *prefix)
{
	struct door *d = door_new(request, path, prefix);
	int          r = d ? door_open(d) : -ENOMEM;

	if (!r) {
		evhttp_connection_set_closecb(d->connection, on_connection_closed, d);
		return;
	}
	if (d) {
		d->ended = true;
		d->posted = false;
		door_close(d);
	}
	reply_now(request, r == -ENOTCONN ? "profiling is off\n" : r == -EAGAIN ? BUSY_TEXT :
		"no memory or no descriptors are left for this request\n");
}

void
evhttp_door_forked(void)
{
	for (struct door *d = doors; d; d = d->next) {
		int quiet = eventfd(0, EFD_CLOEXEC);

		pthread_mutex_init(&d->lock, NULL); /* the server's thread may have held it */
		d->forked = d->ended = true;
		d->posted = false;
		for (int i = 0; i < 2; i++) {
			if (our_fd_is_kept(&d->ends[i], NULL))
				close(d->ends[i].fd);
			d->ends[i].fd = -1;
		}
		if (quiet < 0)
			continue;
		dup3(quiet, d->epoll, O_CLOEXEC);
		close(quiet);
	}
}
