/*
 * server.h - what one server has, shared by the files that make it up.
 * The headers beside it see libevent; nobody outside of this folder includes them.
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "event_base.h"
#include "fd.h"
#include "listener.h"
#include "our_fd.h"
#include "places.h"

/* Descriptors that are open for long, apart from the connections'. */
enum httpd_fd {
	HTTPD_FD_EPOLL,
	HTTPD_FD_WAKE = HTTPD_BASE_FDS, /* a pair of datagram sockets: read */
	HTTPD_FD_WAKER,                 /* written by httpd_post() */
	HTTPD_FD_LISTENERS,
	HTTPD_FDS = HTTPD_FD_LISTENERS + HTTPD_LISTENERS_MAX,
};

struct httpd {
	struct httpd_options  options;
	char                  thread_name[16];
	pthread_t             thread;
	struct event_base    *base;
	struct our_fd_kept    fds[HTTPD_FDS]; /* enum httpd_fd */
	struct our_fd_kept    shown[OUR_TABLE_SHOWN_MAX]; /* copies in the program's table, see httpd_shown() */
	struct event         *wake;
	int64_t               due_ns; /* CLOCK_MONOTONIC: no timer is due before; see httpd_timer_set() */
	/* posted, posted_tail, ready, ready_error; the pair that wakes changes under it */
	pthread_mutex_t       lock;
	pthread_cond_t        ready_cond;
	bool                  ready;
	int                   ready_error;
	struct httpd_posted  *posted, **posted_tail;
	bool                  stopping;
	bool                  lost; /* the daemon has closed our descriptors */
	bool                  paused; /* between httpd_pause() and httpd_resume() there is no thread */
	struct our_fd_kept    through; /* in the program's table: where a thread that is to pause sends its own */
	_Atomic bool          abandoned; /* it could not be stopped: its thread is to end as soon as it can */
	struct event         *grace;
	struct httpd_listener listeners[HTTPD_LISTENERS_MAX];
	size_t                listener_count;
	struct httpd_listener guests[HTTPD_PLACES]; /* of connections that httpd_join() has brought; no sockets */
	time_t                rest_logged;  /* CLOCK_MONOTONIC seconds */
	bool                  rest_logged_once;
	_Atomic unsigned      requests;           /* options.requests, or what it has grown to */
	unsigned              open[HTTPD_PLACES]; /* connections */
	struct httpd_block   *_Atomic blocks[HTTPD_BLOCKS_MAX]; /* NULL: not needed so far */
};

/* loop.c */
/* Every timer of the loop is set by this, or it is late: the loop asks them all only when the first may be due. */
int httpd_timer_set(struct httpd *h, struct event *timer, unsigned ms);
/* Until it is broken: 0.  -EBADF: the descriptors are not ours any more. */
int httpd_loop_run(struct httpd *h);

/* connection.c */
void httpd_stopped_check(struct httpd *h); /* leaves the loop when all is done */

#endif
