/*
 * httpd.h - an HTTP/1.1 server on a thread of its own: limits, timers, replies.
 *
 * All of libevent is behind this door: health and profiling are served by it.
 * Every callback runs on the server's thread, one at a time; what other threads
 * may call says so.  What is asked and how it is answered: answer.h.  HEAD gets no
 * body, every method and every path reaches the handler, errors are plain text, and
 * a client that hangs up is noticed at once.
 */
#ifndef HTTP_HTTPD_H
#define HTTP_HTTPD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <component/error.h>
#include <component/log.h>

#include "answer.h"
#include "listen.h"
#include "our_table.h"

#define HTTPD_REQUESTS           64   /* answered at the same time, unless options say otherwise */
#define HTTPD_REQUESTS_MAX       4096 /* whatever they say */
#define HTTPD_CONNECTIONS_SPARE  16   /* besides: for who is answered at once, be it by 503 */
#define HTTPD_HEADER_BYTES_MAX   (64 * 1024) /* request line and headers; more is answered 431 */
#define HTTPD_HEADERS_MAX        128         /* header lines; a browser sends about 20 */
#define HTTPD_BODY_BYTES_MAX     (1024 * 1024) /* POST symbol: 50,000 addresses; more is answered 413 */
#define HTTPD_BODY_BYTES_DROPPED (16 * 1024) /* of a body that nobody wants, before the reply; for more we close */
#define HTTPD_PIPELINE_BYTES_MAX (64 * 1024) /* behind a request that is being answered; who sends more is closed */
#define HTTPD_HEADER_SECONDS_MAX 32  /* the whole request, not a byte of it */
#define HTTPD_REQUEST_MS_KEPT    250 /* when all places are taken who has not sent his request by then makes room */
#define HTTPD_IDLE_SECONDS_MAX   90  /* between two requests of a connection */
#define HTTPD_LINGER_SECONDS_MAX 2   /* for the client to read why we close */
#define HTTPD_PROBE_SECONDS      60  /* of silence; a peer that is not there is noticed in twice that */
#define HTTPD_REST_MS            1000  /* listeners pause so long after a failed accept */
#define HTTPD_REST_LOG_SECONDS   60  /* between two log lines about it */

struct httpd;
struct httpd_timer;

typedef void httpd_fn(void *arg);

/* A call on its way to the server's thread; the fields are httpd's own. */
struct httpd_posted {
	struct httpd_posted *next;
	httpd_fn            *fn;
	void                *arg;
	bool                 malloced;
};

struct httpd_options {
	const char       *thread_name; /* "component-http" */
	void            (*on_request)(struct answer *a, void *arg); /* must answer, now or later, exactly once */
	/* How many bytes of a body on_request() wants; asked when the header is there, of a request that has a body.
	 * 0, or no such function: the request comes without it. */
	size_t          (*body_max)(const struct ask *ask, void *arg);
	unsigned          requests;    /* at the same time; 0: HTTPD_REQUESTS */
	void            (*on_look)(void *arg); /* nullable; about each second, and now and then in between */
	void             *arg;
	component_log_fn *log;         /* nullable */
	void             *log_arg;
};

/* Starts the thread; *ret is set before it has a descriptor, for httpd_forked() in a fork at any moment.  -ENOTSUP, with the object's name in err, when libevent's
 * symbols have been taken over by another library in this process; -EMFILE when
 * too few descriptors are left. */
int  httpd_start(const struct httpd_options *o, struct httpd *_Atomic *ret, struct component_error *err);
/* Adds listeners; takes the sockets over on success.  tag is given to those who ask there, and
 * to httpd_unlisten().  Any thread; may be called again for more.  -ENOSPC: too many. */
int  httpd_listen(struct httpd *h, struct listen_set *set, void *tag);
/* The TCP listeners with that tag stop listening, or resume it.  The kernel refuses who connects in between.  The sockets
 * stay open and keep their ports; one that the kernel had chosen may be another one afterwards.  What they are then is
 * written to those of told.  On the server's thread.  0 or a negative errno: one does not listen. */
int  httpd_deafen(struct httpd *h, void *tag, bool deaf, struct listen_set *told);
/* As many requests at the same time as that from now on, if that is more.  There are places for so many connections and
 * HTTPD_CONNECTIONS_SPARE more over TCP, and for as many by unix sockets.  Any thread. */
void httpd_set_requests(struct httpd *h, unsigned requests);
/* Closes the listeners with that tag, or all (NULL), now; connections go on.  Who waits
 * there to be accepted is, if there is a place.  Any other thread.  -EBADF: the program
 * has closed our descriptors and the server's thread cannot be reached any more; what
 * was posted is never run, and the memory of h stays. */
int  httpd_unlisten(struct httpd *h, void *tag);
/* Closes listeners at once, pending replies when done or after grace_ms; joins the
 * thread and frees all, requests without a reply included (their on_hangup and
 * on_gone are called first).  Any other thread. */
void httpd_stop(struct httpd *h, unsigned grace_ms);
/* The same; *h becomes NULL before the memory goes, for those who give *h to
 * httpd_forked() in a fork at any moment. */
void httpd_stop_at(struct httpd *_Atomic *h, unsigned grace_ms);
/* Its thread ends, and nothing else: connections, timers and calls wait until httpd_resume(), whose thread has
 * the credentials of its caller.  Any other thread, one at a time; nothing but httpd_post() and httpd_forked()
 * in between.  -EBADF: as httpd_unlisten(); -ETIMEDOUT: it did not come until then (CLOCK_MONOTONIC), and goes
 * on.  A resume that fails, with a negative errno, may be tried again.  A table of descriptors that the server's
 * thread had is the program's from then on (our_table.h). */
int  httpd_pause(struct httpd *h, int64_t until_ns);
int  httpd_resume(struct httpd *h);
/* Where that thread has a table of its own: what the program's shall have as well, by which the program's threads wake
 * the server and people find who listens (/proc/PID/fd).  httpd_show() is for the thread that has started the
 * server, and returns how many are in fds; httpd_shown() for one of the program, which has these copies. */
size_t httpd_show(const struct httpd *h, int fds[OUR_TABLE_SHOWN_MAX]);
void   httpd_shown(struct httpd *h, const int *copies, size_t count);
/* In a forked child (fork.h): closes the parent's descriptors by number
 * and calls nothing of libevent; frees nothing. */
void httpd_forked(struct httpd *h);
/* Runs fn on the server's thread, in the order posted; any thread, never blocks.
 * -ENOMEM; httpd_post_at() cannot fail: at is the caller's memory, lent until fn is
 * called. */
int  httpd_post(struct httpd *h, httpd_fn *fn, void *arg);
void httpd_post_at(struct httpd *h, struct httpd_posted *at, httpd_fn *fn, void *arg);
/* How many requests have no answer, or one that is not yet with the kernel.  On the server's thread. */
size_t httpd_owed(const struct httpd *h);

/*
 * A request that has come to this server, and its connection, for another one of ours.  httpd_leave()
 * on the thread of the first, from on_request(), which owes no answer then; NULL: it could not be
 * done, and the answer is still owed.  httpd_join() on the thread of the other, whose on_request() is
 * called.  The connection ends with that answer.  In between whoever has it must hand it on.
 */
struct httpd_moved;
struct httpd_moved *httpd_leave(struct answer *a);
void                httpd_join(struct httpd *h, struct httpd_moved *m);

/* Calls fn once after ms; then, or after httpd_timer_stop(), the timer is freed.
 * NULL: no memory. */
struct httpd_timer *httpd_timer_start(struct httpd *h, unsigned ms, httpd_fn *fn, void *arg);
void                httpd_timer_stop(struct httpd_timer *t);

#endif
