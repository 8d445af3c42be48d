/*
 * posted_calls.h - work that other threads give to the server's, and the sockets that wake it.
 */
#ifndef HTTP_POSTED_CALLS_H
#define HTTP_POSTED_CALLS_H

#include <pthread.h>
#include <stdbool.h>

#include <event2/util.h>

#include "httpd.h"

/* What a caller in another thread waits for. */
struct httpd_call {
	struct httpd_posted posted;
	struct httpd      *h;
	struct listen_set *set;
	void              *tag;
	unsigned           grace_ms;
	int64_t            until_ns; /* CLOCK_MONOTONIC; 0: as long as it takes */
	int                r;
	bool               done;
	pthread_mutex_t    lock;
	pthread_cond_t     cond;
};

void httpd_call_init(struct httpd_call *c, struct httpd *h);
/* Runs fn on the server's thread and waits.  -EBADF: it cannot be reached any more; -ETIMEDOUT: it did not come
 * until then, and fn is not called. */
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
void httpd_wake_posted(struct httpd *h); /* the same, if a call waits: whose wake has not come */
bool httpd_wake_is_ours(const struct httpd *h); /* on the server's thread, or under the lock */

#endif
