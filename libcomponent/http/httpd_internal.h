/*
 * httpd_internal.h - what the files of httpd share.  The only header that sees
 * libevent, and only they include it.
 */
#ifndef HTTP_HTTPD_INTERNAL_H
#define HTTP_HTTPD_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "fd.h"
#include "httpd.h"
#include "our_fd.h"

#define HTTPD_LISTENERS_MAX 16 /* sockets: two of localhost, a debug socket, spare */
#define HTTPD_BASE_FDS      3  /* libevent's own: an epoll and both ends of a pipe */

/* Descriptors that are open for long, apart from the connections'. */
enum httpd_fd {
	HTTPD_FD_EPOLL,
	HTTPD_FD_WAKE = HTTPD_BASE_FDS, /* a pair of datagram sockets: read */
	HTTPD_FD_WAKER,                 /* written by httpd_post() */
	HTTPD_FD_LISTENERS,
	HTTPD_FDS = HTTPD_FD_LISTENERS + HTTPD_LISTENERS_MAX,
};

/* Whose places a connection takes. */
enum httpd_places { HTTPD_PLACES_TCP, HTTPD_PLACES_LOCAL /* unix sockets */, HTTPD_PLACES };

/* A listening socket of ours.  Closed or not, it stays as long as connections and requests point
 * at it. */
struct httpd_listener {
	struct httpd        *h;
	struct listen_socket socket;
	enum httpd_places    places;
	void                *tag;
	struct event        *ready; /* NULL: closed */
	struct event        *rest;  /* ends the pause after a failed accept */
	bool                 again; /* it was open when the descriptors were lost */
	bool                 crowded; /* it rests until there is a place */
	unsigned             users;   /* connections and requests */
};

enum httpd_conn_state {
	HTTPD_CONN_FREE,
	HTTPD_CONN_IDLE,   /* between requests, nothing read */
	HTTPD_CONN_READ,   /* a request is arriving */
	HTTPD_CONN_BUSY,   /* the handler owes a reply */
	HTTPD_CONN_FLUSH,  /* the reply is complete, its bytes are not out */
	HTTPD_CONN_LINGER, /* answered and shut down; reading what still comes */
};

struct httpd_conn {
	struct httpd          *h;
	struct httpd_listener *listener;
	struct our_fd_kept     fd; /* none when free; what httpd_forked() closes */
	enum httpd_conn_state  state;
	struct event          *readable, *writable, *timer;
	struct evbuffer       *in, *out;
	struct httpd_request  *incoming; /* READ only: its header is there, its body is not yet */
	struct httpd_request  *request; /* BUSY, and READ while it is being refused */
	size_t                 scanned; /* bytes of in that hold no end of header */
	bool                   eof;        /* the client sent FIN */
	bool                   keep_alive; /* after this reply */
	bool                   linger;     /* input is left over, or to come: it is dropped, and we close gently */
	int64_t                since_ns;   /* CLOCK_MONOTONIC: its state is that, or its client has read something of the reply */
	char                   peer[ASK_PEER_BYTES];
};

/* Connections, allocated when they are needed and kept until the end: httpd_forked() looks at them at
 * any moment. */
#define HTTPD_BLOCK_CONNECTIONS 64
#define HTTPD_BLOCKS_MAX \
	((2 * (HTTPD_REQUESTS_MAX + HTTPD_CONNECTIONS_SPARE) + HTTPD_BLOCK_CONNECTIONS - 1) / \
		HTTPD_BLOCK_CONNECTIONS)

struct httpd_block {
	struct httpd_conn conns[HTTPD_BLOCK_CONNECTIONS];
};

struct httpd_header {
	const char *name, *value;
};

enum httpd_body_state { HTTPD_BODY_BEGIN, HTTPD_BODY_DATA, HTTPD_BODY_SIZE, HTTPD_BODY_CHUNK,
	HTTPD_BODY_CHUNK_END, HTTPD_BODY_TRAILER, HTTPD_BODY_DONE };

struct httpd_request {
	struct answer          answer; /* first: it is the request for who answers */
	struct httpd          *h;
	struct httpd_conn     *conn; /* NULL: gone */
	struct httpd_listener *listener;
	char                  *head; /* the header's bytes, cut into strings */
	char                  *path; /* of answer.ask, in memory of its own */
	unsigned               minor; /* HTTP/1.minor */
	struct httpd_header    headers[HTTPD_HEADERS_MAX];
	unsigned               header_count;
	int64_t                content_length; /* -1: none given */
	bool                   body_chunked, expect_continue, keep_alive;
	enum httpd_body_state  body_state;
	size_t                 body_left;  /* of the body, or of the chunk */
	size_t                 body_max;   /* more is answered 413 */
	bool                   body_dropped; /* nobody wants it */
	size_t                 trailer_bytes;
	struct evbuffer       *body;
	bool                   reply_chunked;
	bool                   reply_broken;  /* a part of it found no memory */
	char                   peer[ASK_PEER_BYTES];
};

/* What a caller in another thread waits for. */
struct httpd_call {
	struct httpd_posted posted;
	struct httpd      *h;
	struct listen_set *set;
	void              *tag;
	unsigned           grace_ms;
	int                r;
	bool               done;
	pthread_mutex_t    lock;
	pthread_cond_t     cond;
};

struct httpd {
	struct httpd_options  options;
	char                  thread_name[16];
	pthread_t             thread;
	struct event_base    *base;
	struct our_fd_kept    fds[HTTPD_FDS]; /* enum httpd_fd */
	struct event         *wake;
	/* posted, posted_tail, ready, ready_error; the pair that wakes changes under it */
	pthread_mutex_t       lock;
	pthread_cond_t        ready_cond;
	bool                  ready;
	int                   ready_error;
	struct httpd_posted  *posted, **posted_tail;
	bool                  stopping;
	bool                  lost; /* the daemon has closed our descriptors */
	_Atomic bool          abandoned; /* it could not be stopped: its thread is to end as soon as it can */
	struct event         *grace;
	struct httpd_listener listeners[HTTPD_LISTENERS_MAX];
	size_t                listener_count;
	time_t                rest_logged;  /* CLOCK_MONOTONIC seconds */
	bool                  rest_logged_once;
	_Atomic unsigned      requests;           /* options.requests, or what it has grown to */
	unsigned              open[HTTPD_PLACES]; /* connections */
	struct httpd_block   *_Atomic blocks[HTTPD_BLOCKS_MAX]; /* NULL: not needed so far */
};

/* event_base.c */
/* fds: -1 where it is not certain, and nothing but on success. */
int  httpd_base_new(struct event_base **ret, int fds[HTTPD_BASE_FDS]);

/* posted_calls.c */
void httpd_call_init(struct httpd_call *c, struct httpd *h);
/* Runs fn on the server's thread and waits.  -EBADF: it cannot be reached any more. */
int  httpd_call_run(struct httpd_call *c, httpd_fn *fn);
void httpd_call_finish(struct httpd_call *c, int r); /* by fn, last */
/* All that was posted.  The server's thread. */
void httpd_posted_run(struct httpd *h);
/* The pair of sockets that wakes the loop: made, and its ends that are still ours closed.  The server's
 * thread. */
int  httpd_wake_open(struct httpd *h);
void httpd_wake_close(struct httpd *h);
void httpd_on_wake(evutil_socket_t fd, short what, void *h); /* of its first end */
bool httpd_wake(struct httpd *h); /* on the server's thread; false: the pair is not ours any more */
bool httpd_wake_is_ours(const struct httpd *h); /* on the server's thread, or under the lock */

/* event_base.c: marks an epoll by a socket of ours, which it will not tell of. */
int  httpd_epoll_mark(int epoll, int mark);
bool httpd_epoll_is_marked(int epoll, int mark); /* mark must be ours; nothing changes anywhere */

/* loop.c */
/* Until it is broken: 0.  -EBADF: the descriptors are not ours any more. */
int httpd_loop_run(struct httpd *h);

/* listener.c */
void httpd_listeners_close(struct httpd *h);
void httpd_listeners_forget(struct httpd *h); /* closes the sockets that are still ours, frees nothing */
/* Those again, with a new base: 0 or a negative errno. */
int  httpd_listeners_again(struct httpd *h);

/* connection.c */
/* For what l has accepted: c->fd.  Closes it when there is no memory. */
void httpd_conn_open(struct httpd_conn *c, struct httpd_listener *l,
	const struct sockaddr_storage *peer);
void httpd_conn_close(struct httpd_conn *c);
/* Tells its request, closes its socket if that is still ours, frees nothing. */
void httpd_conn_forget(struct httpd_conn *c);
void httpd_conn_move(struct httpd_conn *c); /* reads what has come, or writes what it can: may close it */
void httpd_conn_replied(struct httpd_conn *c); /* its request's reply is complete */
void httpd_conn_output(struct httpd_conn *c);  /* there is more to write */
void httpd_stopped_check(struct httpd *h); /* leaves the loop when all is done */

/* places.c */
/* Sees to it that there is a place for a connection of l, if need be by closing another one; above 0:
 * there will not be any before so many ms are over, unless a connection moves on. */
unsigned           httpd_place_ms(const struct httpd_listener *l);
struct httpd_conn *httpd_place(struct httpd *h); /* one that no connection has; NULL: no memory */
/* The i-th that there is, used or free; NULL: there are no more. */
struct httpd_conn *httpd_conn_at(const struct httpd *h, size_t i);
void httpd_conn_stopping(struct httpd *h); /* closes those that owe nothing */

/* request.c */
/* Takes one request off in.  -EAGAIN: not all there yet, and out may tell the client to go on; 0: *ret;
 * above 0: an HTTP status to answer *ret with before closing, whatever it asks for. */
int  httpd_request_read(struct httpd_conn *c, struct httpd_request **ret);
void httpd_request_free(struct httpd_request *r);

/* reply.c */
extern const struct answer_sink httpd_reply_sink;

/* *e may be NULL, and is so afterwards. */
static inline void
httpd_event_free(struct event **e)
{
	if (*e)
		event_free(*e);
	*e = NULL;
}

#endif
