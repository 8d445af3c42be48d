/*
 * httpd.c - the server's thread: its loop, its visitors, its timers, its end.
 *
 *     other threads --httpd_post()--> list + socket --> httpd_on_wake() --> fn
 *     listener.c --> connection.c --> request.c --> options.on_request
 *
 * The thread owns everything libevent, from event_base_new() to the last free,
 * so nothing of it needs a lock and none of its memory is counted as the
 * daemon's.  Others reach it through httpd_post() alone.
 *
 * What a stranger would get wrong:
 * - evthread_use_pthreads(), event_set_mem_functions() and their like belong to
 *   the whole process, which is not ours.  Hence posted_calls.c in place of event_active().
 * - Writing to a socket that was closed raises SIGPIPE.  It is blocked here, as
 *   all signals are (our_thread.c), and stays pending on this thread alone.
 * - A forked child has our descriptors but not our thread.  Each number is stored
 *   atomically, and cleared before its close() or while no thread forks (our_fd.h); what is
 *   behind it is looked at again.  So httpd_forked() can only miss one, never close one of
 *   the daemon's.
 *
 * Why not evhttp: when memory runs out it crashes at several places of each request
 * (evhttp_request_free() of a half-made one, evhttp_connection_free() likewise), which no
 * guard mends; it reads a body before anybody can be asked for the token; it answers what
 * it cannot read in HTML; and before Debian's 2.1.12-stable-8+deb12u1 (CVE-2026-63388) it
 * aborted on a unix client bound to a path of more than 25 bytes.  It tells that a client has
 * left only to those who switch EV_READ on while a reply is pending, and then one more byte
 * from that client ends the process (event_errx).  libevent's loop and buffers have none of
 * these faults.
 *
 * What the thread does when the daemon closes its descriptors: loop.c.
 *
 * Tests: tests/http/protocol.t, tests/serve/start_stop.t, tests/serve/fork.t, tests/http/evhttp_why.t.
 */
#include <config.h>

#include "server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "connection.h"
#include "expected_library.h"
#include "fd.h"
#include "our_table.h"
#include "our_thread.h"
#include "pages.h"
#include "posted_calls.h"
#include "request.h"


/* A daemon under LeakSanitizer would be told that what only our own mapping points
 * to has leaked. */
void __lsan_register_root_region(const void *begin, size_t size) __attribute__((weak));
void __lsan_unregister_root_region(const void *begin, size_t size) __attribute__((weak));

struct httpd_timer {
	struct event *event;
	httpd_fn     *fn;
	void         *arg;
};

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct httpd_timer *t = arg;
	httpd_fn           *fn = t->fn;
	void               *fn_arg = t->arg;

	(void)fd;
	(void)what;
	httpd_timer_stop(t);
	fn(fn_arg);
}

struct httpd_timer *
httpd_timer_start(struct httpd *h, unsigned ms, httpd_fn *fn, void *arg)
{
	struct httpd_timer *t = h->base ? calloc(1, sizeof(*t)) : NULL; /* lost: no base */

	if (!t)
		return NULL;
	t->fn = fn;
	t->arg = arg;
	t->event = evtimer_new(h->base, on_timer, t);
	if (!t->event || httpd_timer_set(h, t->event, ms)) {
		httpd_timer_stop(t);
		return NULL;
	}
	return t;
}

void
httpd_timer_stop(struct httpd_timer *t)
{
	if (!t)
		return;
	if (t->event)
		event_free(t->event);
	free(t);
}

static void
on_grace_over(evutil_socket_t fd, short what, void *arg)
{
	struct httpd *h = arg;

	(void)fd;
	(void)what;
	event_base_loopbreak(h->base);
}

static void
stop_call(void *arg)
{
	struct httpd_call *c = arg;
	struct httpd      *h = c->h;

	h->stopping = true;
	if (h->lost)
		goto out;
	httpd_listeners_close(h);
	httpd_conn_stopping(h);
	httpd_timer_set(h, h->grace, c->grace_ms);
	httpd_stopped_check(h);
out:
	httpd_call_finish(c, 0);
}

static int
loop_init(struct httpd *h)
{
	int fds[HTTPD_BASE_FDS], r;

	r = httpd_wake_open(h);
	if (!r)
		r = httpd_base_new(&h->base, fds);
	if (r)
		return r;
	if (fds[HTTPD_FD_EPOLL] >= 0 &&
	    httpd_epoll_mark(fds[HTTPD_FD_EPOLL], h->fds[HTTPD_FD_WAKER].fd))
		fds[HTTPD_FD_EPOLL] = -1;
	for (int i = 0; i < HTTPD_BASE_FDS; i++)
		our_fd_keep(&h->fds[i], fds[i]);
	h->wake = event_new(h->base, h->fds[HTTPD_FD_WAKE].fd, EV_READ | EV_PERSIST, httpd_on_wake,
		h);
	h->grace = evtimer_new(h->base, on_grace_over, h);
	if (!h->wake || !h->grace || event_add(h->wake, NULL))
		return -ENOMEM;
	return 0;
}

static void
loop_release(struct httpd *h)
{
	struct httpd_conn *c;

	httpd_listeners_close(h);
	for (size_t i = 0; (c = httpd_conn_at(h, i)); i++)
		httpd_conn_close(c);
	httpd_event_free(&h->wake);
	httpd_event_free(&h->grace);
	for (int i = 0; i < HTTPD_BASE_FDS; i++)
		h->fds[i].fd = -1;
	if (h->base)
		event_base_free(h->base);
	h->base = NULL;
	httpd_wake_close(h);
}

/*
 * The daemon has closed descriptors that it did not know (closefrom()).  Their numbers may be
 * its own by now, so nothing is freed, what is still ours is closed, and all is made anew.
 * An epoll stays open if both sockets that it knows are lost: it cannot be told from the daemon's.
 */
static int
loop_again(struct httpd *h)
{
	struct httpd_conn *c;
	/* A child cannot tell any more whose it is. */
	int                epoll = atomic_exchange(&h->fds[HTTPD_FD_EPOLL].fd, -1), r;

	for (size_t i = 0; (c = httpd_conn_at(h, i)); i++)
		httpd_conn_forget(c);
	httpd_listeners_forget(h);
	/* Either tells it; what it told of the first is of no use any more. */
	for (int i = HTTPD_FD_WAKE; i <= HTTPD_FD_WAKER; i++)
		if (our_fd_is_kept(&h->fds[i], NULL) &&
		    httpd_epoll_is_marked(epoll, h->fds[i].fd)) {
			close(epoll);
			break;
		}
	for (int i = HTTPD_FD_EPOLL + 1; i < HTTPD_BASE_FDS; i++)
		our_fd_kept_close(&h->fds[i]);
	httpd_wake_close(h);
	h->base = NULL;
	h->wake = h->grace = NULL;
	fd_raise(); /* as when it began: the numbers of the program stay what they are */
	r = h->stopping ? -ECANCELED : loop_init(h);
	if (!r)
		r = httpd_listeners_again(h);
	fd_lower();
	if (!r && !httpd_wake(h)) /* nobody could meanwhile */
		r = -EBADF;
	if (r)
		loop_release(h);
	return r;
}

/* That cannot be had: calls from other threads are still answered, and stopping works. */
static void
run_lost(struct httpd *h)
{
	if (!h->lost && h->options.log)
		h->options.log(h->options.log_arg, COMPONENT_LOG_ERROR,
			"the HTTP server is lost: the program has closed its descriptors; "
			"start it after closing what was inherited", NULL, 0);
	h->lost = true;
	while (!h->stopping && !h->paused) {
		pthread_mutex_lock(&h->lock);
		while (!h->posted)
			pthread_cond_wait(&h->ready_cond, &h->lock);
		pthread_mutex_unlock(&h->lock);
		httpd_posted_run(h);
	}
}

static void
say_ready(struct httpd *h, int error)
{
	pthread_mutex_lock(&h->lock);
	h->ready = true;
	h->ready_error = error;
	pthread_cond_signal(&h->ready_cond);
	pthread_mutex_unlock(&h->lock);
}

static void *
run_on(void *arg)
{
	struct httpd *h = arg;
	int           r = h->lost ? -EBADF : 0;

	while (!h->lost && (r = httpd_loop_run(h)) < 0 && !h->abandoned && loop_again(h) == 0)
		;
	if (h->abandoned) /* what it would tell may be gone */
		return NULL;
	if (r < 0)
		run_lost(h);
	else if (!h->paused)
		loop_release(h);
	else
		our_table_send(&h->through);
	return NULL;
}

static void *
run_again(void *arg)
{
	httpd_wake(arg); /* what was under way when the loop was left is no reason for an epoll to wake */
	return run_on(arg);
}

static void *
run(void *arg)
{
	struct httpd *h = arg;
	int           r = loop_init(h);

	if (r)
		loop_release(h);
	say_ready(h, r);
	return r ? NULL : run_on(h);
}

static void
httpd_free(struct httpd *h)
{
	for (size_t i = 0; i < HTTPD_BLOCKS_MAX; i++)
		free(h->blocks[i]);
	pthread_cond_destroy(&h->ready_cond);
	pthread_mutex_destroy(&h->lock);
	if (__lsan_unregister_root_region)
		__lsan_unregister_root_region(h, sizeof(*h));
	pages_unmap(h, sizeof(*h));
}

static struct httpd *
httpd_new(const struct httpd_options *o)
{
	/* Not malloc: the caller's heap profile would show it. */
	struct httpd *h = pages_map(sizeof(*h));

	if (!h)
		return NULL;
	if (__lsan_register_root_region)
		__lsan_register_root_region(h, sizeof(*h));
	h->options = *o;
	strncpy(h->thread_name, o->thread_name ? o->thread_name : "component-http",
		sizeof(h->thread_name) - 1);
	h->options.thread_name = h->thread_name;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->ready_cond, NULL);
	h->posted_tail = &h->posted;
	for (int i = 0; i < HTTPD_FDS; i++)
		h->fds[i].fd = -1;
	for (int i = 0; i < OUR_TABLE_SHOWN_MAX; i++)
		h->shown[i].fd = -1;
	h->through.fd = -1;
	for (int i = 0; i < HTTPD_PLACES; i++)
		h->guests[i] = (struct httpd_listener){ .h = h, .places = (enum httpd_places)i };
	httpd_set_requests(h, o->requests ? o->requests : HTTPD_REQUESTS);
	return h;
}

int
httpd_start(const struct httpd_options *o, struct httpd *_Atomic *ret, struct component_error *err)
{
	struct httpd *h;
	int           r;

	r = expected_library_libevent(err);
	if (r)
		return r;
	h = httpd_new(o);
	if (!h)
		return -ENOMEM;
	*ret = h;
	r = our_thread_start(h->thread_name, run, h, &h->thread);
	if (r) {
		component_error_set(err, "cannot start the thread '%s': %s", h->thread_name, strerror(-r));
		*ret = NULL;
		httpd_free(h);
		return r;
	}
	pthread_mutex_lock(&h->lock);
	while (!h->ready)
		pthread_cond_wait(&h->ready_cond, &h->lock);
	r = h->ready_error;
	pthread_mutex_unlock(&h->lock);
	if (r) {
		component_error_set(err, "cannot start the HTTP server: %s%s", strerror(-r),
			r == -EMFILE || r == -ENFILE ? "; raise the limit of open files (LimitNOFILE=, ulimit -n)" : "");
		pthread_join(h->thread, NULL);
		*ret = NULL;
		httpd_free(h);
	}
	return r;
}

static void
pause_call(void *arg)
{
	struct httpd_call *c = arg;

	c->h->paused = true;
	if (!c->h->lost)
		event_base_loopbreak(c->h->base);
	httpd_call_finish(c, 0);
}

/* What the last thread sent when it ended.  What it did not send is lost, as if the daemon had closed it. */
static void
take_table(struct httpd *h, const struct our_fd_kept *from)
{
	for (int i = 0; i < OUR_TABLE_SHOWN_MAX; i++) /* first: they have numbers that others are to have again */
		our_fd_kept_close(&h->shown[i]);
	if (!our_table_merge(from))
		our_thread_all_gone(CLOCK_NS_PER_S); /* and with the last one its table, or the address is taken still */
}

size_t
httpd_show(const struct httpd *h, int fds[OUR_TABLE_SHOWN_MAX])
{
	size_t count = 0;

	fds[count++] = h->fds[HTTPD_FD_WAKER].fd;
	for (int i = HTTPD_FD_LISTENERS; i < HTTPD_FDS && count < OUR_TABLE_SHOWN_MAX; i++)
		if (h->fds[i].fd >= 0)
			fds[count++] = h->fds[i].fd;
	return count;
}

void
httpd_shown(struct httpd *h, const int *copies, size_t count)
{
	sigset_t mask;

	our_fd_hold(&mask); /* a child must know them, or not have them */
	for (size_t i = 0; i < count; i++) {
		our_fd_forget(copies[i]);
		our_fd_keep(&h->shown[i], fd_keep(copies[i]));
	}
	our_fd_release(&mask);
}

int
httpd_pause(struct httpd *h, int64_t until_ns)
{
	struct httpd_call  c;
	struct our_fd_kept from;
	int                pair[2], r;

	if (!our_table_is_apart() || our_fd_socketpair(pair))
		pair[0] = pair[1] = -1; /* what cannot be sent is lost: the program's call matters more */
	our_fd_keep_listed(&from, pair[0]);
	our_fd_keep_listed(&h->through, pair[1]);
	httpd_call_init(&c, h);
	c.until_ns = until_ns;
	r = httpd_call_run(&c, pause_call);
	if (!r) {
		pthread_join(h->thread, NULL);
		if (our_table_is_apart())
			take_table(h, &from);
	}
	our_fd_kept_close(&from);
	our_fd_kept_close(&h->through);
	return r;
}

int
httpd_resume(struct httpd *h)
{
	int r;

	h->paused = false;
	r = our_thread_start(h->thread_name, run_again, h, &h->thread);
	if (r)
		h->paused = true;
	return r;
}

/* Everything but the memory.  False: the thread hangs where nothing of ours can wake
 * it, and keeps the memory. */
static bool
halt(struct httpd *h, unsigned grace_ms)
{
	struct httpd_call c;

	httpd_call_init(&c, h);
	c.grace_ms = grace_ms;
	if (httpd_call_run(&c, stop_call)) {
		h->abandoned = true;
		pthread_detach(h->thread);
		return false;
	}
	pthread_join(h->thread, NULL);
	for (struct httpd_posted *p = h->posted, *next; p; p = next) {
		next = p->next;
		if (p->malloced)
			free(p);
	}
	return true;
}

void
httpd_stop_at(struct httpd *_Atomic *at, unsigned grace_ms)
{
	struct httpd *h = *at;
	bool          ended;

	if (!h)
		return;
	ended = halt(h, grace_ms);
	*at = NULL;
	if (ended)
		httpd_free(h);
}

void
httpd_stop(struct httpd *h, unsigned grace_ms)
{
	struct httpd *_Atomic at = h;

	httpd_stop_at(&at, grace_ms);
}

/* The epoll last: asking it is a system call that a filter of the daemon's may end it for.  So
 * it is taken for ours when nothing else was lost, and else stays open for as long as this child. */
void
httpd_forked(struct httpd *h)
{
	struct httpd_conn *c;
	bool               all = true;

	if (!h)
		return;
	/* Without the lock, which another thread may have held. */
	for (int i = HTTPD_FD_EPOLL + 1; i < HTTPD_FDS; i++)
		all = our_fd_kept_close(&h->fds[i]) && all;
	for (size_t i = 0; (c = httpd_conn_at(h, i)); i++)
		all = our_fd_kept_close(&c->fd) && all;
	for (int i = 0; i < OUR_TABLE_SHOWN_MAX; i++)
		our_fd_kept_close(&h->shown[i]);
	if (all)
		our_fd_kept_close(&h->fds[HTTPD_FD_EPOLL]);
}
