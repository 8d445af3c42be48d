/*
 * profiler.c - the public door: one server for a process, started, stopped and
 * brought back after fork.
 *
 * One global, because a process has one SIGPROF, one malloc and one answer to
 * "where do I point pprof".  The mutex guards it; nothing that the daemon may hold
 * is waited for while it is locked, other than the end of our own threads.
 *
 * What a stranger would get wrong: a fork can happen while another thread is in
 * here, so the child makes the mutex anew instead of waiting for a thread that it
 * does not have.  Memory of the parent's server stays as it was (freeing it would
 * mean calling libevent); only its descriptors are closed.
 *
 * Tests: tests/serve/start_stop.t, tests/serve/fork.t, tests/serve/test_profile_write.c.
 */
#include <config.h>

#include <component/profiler.h>

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "addresses.h"
#include "clock.h"
#include "debugdata.h"
#include "fd.h"
#include "fork.h"
#include "profiler.h"
#include "program_file.h"
#include "rates.h"
#include "routes.h"
#include "seccomp.h"
#include "serve.h"
#include "stack_table.h"
#include "symbols.h"
#include "unfiltered.h"
#include "unwind.h"

#define REBIND_NS       (2 * CLOCK_NS_PER_S) /* for the parent of a daemon to be gone and its port free */
#define REBIND_PAUSE_MS 20
#define REST_WAIT_NS    (5 * CLOCK_NS_PER_S)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int             holder_cancel;   /* lock: what its holder has cancellation at */
static unsigned        lent;            /* lock: jobs without a request that walk stacks */
static struct serve   *_Atomic current; /* from its bind to its end */
static _Atomic bool    running;         /* current is open */
static struct serve   *_Atomic parents; /* in a child: what ran in the parent */
static struct {
	bool    is_given;
	int64_t rate;
} called[COLLECTORS_MAX]; /* lock: by a call, and no server has started since */

/* Not the lock above: a stop holds that one for seconds, and who asks is in a loop. */
static pthread_mutex_t asked_lock = PTHREAD_MUTEX_INITIALIZER;
static struct serve   *asked; /* asked_lock; current, as long as it is open */
static _Atomic bool    used; /* a public door, ever */

static void
on_forked(void)
{
	struct serve *s = current;

	addresses_hosts_forked();
	pthread_mutex_init(&asked_lock, NULL);
	if (!used)
		return;
	pthread_mutex_init(&lock, NULL);
	asked = NULL;
	lent = 0;
	for (size_t i = 0; i < collector_count; i++)
		if (collectors[i]->forked)
			collectors[i]->forked();
	unwind_forked();
	if (!s)
		return;
	serve_forked(s);
	if (running)
		parents = s;
	running = false;
	current = NULL;
}

FORK_SLOT(FORK_SERVE, NULL, NULL, on_forked);

static void
asked_set(struct serve *s)
{
	pthread_mutex_lock(&asked_lock);
	asked = s;
	pthread_mutex_unlock(&asked_lock);
}

int
profiler_ask(unsigned open, struct httpd_posted *at, httpd_fn *fn, void *arg,
	struct profiler_asked *ret)
{
	int r = -ENOTCONN;

	pthread_mutex_lock(&asked_lock);
	if (asked && open > serve_requests(&asked->options) + HTTPD_CONNECTIONS_SPARE) {
		r = -EAGAIN;
	} else if (asked) {
		*ret = (struct profiler_asked){ asked, asked->httpd };
		httpd_post_at(asked->httpd, at, fn, arg);
		r = 0;
	}
	pthread_mutex_unlock(&asked_lock);
	return r;
}

bool
profiler_has_jobs(void)
{
	bool has;

	pthread_mutex_lock(&asked_lock);
	has = asked && serve_has_jobs(asked);
	pthread_mutex_unlock(&asked_lock);
	return has;
}

int
profiler_host(const void *owner, const struct address *a, const struct listen_set *set)
{
	return addresses_host(owner, a, set);
}

void
profiler_host_end(const void *owner)
{
	addresses_host_end(owner);
}

/* Each has a descriptor that no limit of a server counts. */
#define COMING_MAX 64

struct taken {
	struct httpd_posted   posting;
	struct profiler_asked server;
	struct httpd_moved   *moved;
};

static void
on_taken(void *arg)
{
	struct taken *t = arg;

	atomic_fetch_sub(&t->server.serve->coming, 1);
	httpd_join(t->server.httpd, t->moved);
	free(t);
}

int
profiler_take(const void *owner, struct answer *a)
{
	struct taken *t = NULL;
	int           r = -ENOTCONN;

	pthread_mutex_lock(&asked_lock);
	if (!asked || asked->tcp.handed_by != owner)
		goto out;
	r = -EAGAIN;
	if (atomic_load(&asked->coming) >= COMING_MAX) /* it grows with asked_lock alone */
		goto out;
	t = malloc(sizeof(*t));
	r = -ENOMEM;
	if (!t)
		goto out;
	t->server = (struct profiler_asked){ asked, asked->httpd };
	t->moved = httpd_leave(a);
	if (!t->moved)
		goto out;
	atomic_fetch_add(&asked->coming, 1);
	httpd_post_at(t->server.httpd, &t->posting, on_taken, t);
	t = NULL;
	r = 0;
out:
	pthread_mutex_unlock(&asked_lock);
	free(t);
	return r;
}

size_t
profiler_body_max(const void *owner, const struct ask *ask)
{
	size_t max = 0;

	pthread_mutex_lock(&asked_lock);
	if (asked && asked->tcp.handed_by == owner)
		max = routes_body_max(ask, asked);
	pthread_mutex_unlock(&asked_lock);
	return max;
}

/* Every public door: files are read and threads joined with the lock held, where a thread
 * that is cancelled would end and keep it. */
static void
door_enter(void)
{
	int cancel;

	used = true;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&lock);
	holder_cancel = cancel;
}

static void
door_leave(void)
{
	int cancel = holder_cancel;

	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(cancel, NULL);
}

/* ---- the collectors ---- */

/* Of an option; where that is as usual, a rate that a call has given stays. */
static int64_t
rate_at_start(const struct component_profiler_options *o, size_t i)
{
	static const struct component_profiler_options usual = COMPONENT_PROFILER_OPTIONS_INIT;
	const struct collector_rate                   *rate = collectors[i]->rate;
	int64_t                                        option = rates_of_options(o, rate);

	return called[i].is_given && option == rates_of_options(&usual, rate) ? called[i].rate : option;
}

/* With these rates, or NULL.  Their status() says why one is off. */
static void
collectors_start(struct serve *s, const int64_t *rates)
{
	for (size_t i = 0; i < collector_count; i++) {
		const struct collector *c = collectors[i];

		if (c->rate) {
			s->rates[i] = rates ? rates[i] : rate_at_start(&s->options, i);
			c->rate->set(s->rates[i]);
		}
		if (c->start)
			c->start();
	}
}

static void
collectors_stop(void)
{
	for (size_t i = 0; i < collector_count; i++) {
		if (collectors[i]->rate)
			collectors[i]->rate->set(0);
		if (collectors[i]->stop)
			collectors[i]->stop();
	}
}

static void
rates_get(int64_t *ret)
{
	for (size_t i = 0; i < collector_count; i++)
		ret[i] = collectors[i]->rate ? collectors[i]->rate->get() : 0;
}

/* After collectors_stop(). */
static void
rates_again(const int64_t *rates)
{
	for (size_t i = 0; i < collector_count; i++)
		if (collectors[i]->rate && rates[i])
			collectors[i]->rate->set(rates[i]);
}

static void
collectors_forget(void)
{
	for (size_t i = 0; i < collector_count; i++)
		if (collectors[i]->forget)
			collectors[i]->forget();
}

/* With the lock held: the server, open or half open, and what it has switched on. */
static void
end_by(void (*close)(struct serve *s))
{
	struct serve *s = current;

	running = false;
	asked_set(NULL);
	close(s);
	collectors_stop();
	if (lent == 0)
		unwind_stop();
	collectors_forget();
	symbols_keep(0);
	program_file_release();
	current = NULL; /* nothing of it is open any more; a child may forget it */
	serve_free(s);
}

static void
end(void)
{
	end_by(serve_stop);
}

_Static_assert((int)UNWIND_FRAME_POINTER == (int)COMPONENT_UNWINDER_FRAME_POINTER &&
	(int)UNWIND_TABLES == (int)COMPONENT_UNWINDER_TABLES &&
	(int)UNWIND_LIBUNWIND == (int)COMPONENT_UNWINDER_LIBUNWIND,
	"a row of unwind.c has the number that options give it");

/* With the lock held. */
static int
start(const struct component_profiler_options *o, bool is_worker, const int64_t *rates,
	enum profiler_fault *ret_fault, struct component_error *err)
{
	int64_t          before[COLLECTORS_MAX];
	enum unwind_mode mode;
	struct serve    *s;
	int              r;

	if (running) {
		component_error_set(err, "the profiling server is running already");
		return -EALREADY;
	}
	r = serve_bind(o, is_worker, &s, ret_fault, err);
	if (r)
		return r;
	rates_get(before);
	seccomp_look(); /* what is added from now on is the program's own */
	stack_table_set_limit(s->options.memory_bytes);
	debugdata_prepare();
	program_file_hold();
	symbols_keep(s->options.symbol_memory_bytes);
	current = s;
	mode = (enum unwind_mode)s->options.unwinder;
	r = unwind_start(mode); /* unwind_name() says what it is */
	if (r && unwinder_of(mode)->package) {
		bool missing = r == -ENOENT;

		component_error_set(err, "stacks cannot be walked by %s: %s%s%swrite --profiling-unwinder=auto",
			unwinder_of(mode)->name,
			missing ? "the library is not installed; install the Debian package " :
				  "this build or that library lacks what it takes; ",
			missing ? unwinder_of(mode)->package : "", missing ? ", or " : "");
		end();
		rates_again(before);
		return r;
	}
	collectors_start(s, rates);
	r = serve_open(s, err);
	if (!r) {
		asked_set(s); /* before it runs: who sees that may ask.  A shared port hands over from now on, before anybody is told */
		running = true;
		r = serve_announce(s, err);
	}
	if (r) {
		end();
		rates_again(before);
	} else {
		memset(called, 0, sizeof(called));
	}
	return r;
}

int
profiler_start(const struct component_profiler_options *o, const int64_t *rates,
	enum profiler_fault *ret_fault, struct component_error *err)
{
	int r;

	door_enter();
	fd_raise();
	r = start(o, false, rates, ret_fault, err);
	fd_lower();
	if (!r)
		parents = NULL;
	door_leave();
	return r;
}

void
profiler_foresee(void)
{
	door_enter();
	debugdata_prepare();
	program_file_hold_early();
	door_leave();
}

void
profiler_foresee_end(void)
{
	door_enter();
	if (!running && !seccomp_on()) /* a filter may end the caller for it */
		program_file_release();
	door_leave();
}

int
component_profiler_start_options(const struct component_profiler_options *options,
	struct component_error *err)
{
	enum profiler_fault fault;
	int                 r = profiler_start(options, NULL, &fault, err);

	if (r && err && !*err->text)
		component_error_set(err, "cannot start profiling: %s", strerror(-r));
	return r;
}

int
component_profiler_start(const char *address)
{
	struct component_profiler_options o = COMPONENT_PROFILER_OPTIONS_INIT;

	o.address = address;
	return component_profiler_start_options(&o, NULL);
}

int
component_profiler_stop(void)
{
	door_enter();
	if (running && !unfiltered_run(current->httpd, end))
		end();
	parents = NULL;
	door_leave();
	return 0;
}

/* ---- where its threads have a table of descriptors of their own ---- */

size_t
profiler_show(int fds[OUR_TABLE_SHOWN_MAX])
{
	size_t count;

	door_enter();
	count = running ? httpd_show(current->httpd, fds) : 0;
	door_leave();
	return count;
}

void
profiler_shown(const int *copies, size_t count)
{
	door_enter();
	fd_raise();
	if (running)
		httpd_shown(current->httpd, copies, count);
	else
		for (size_t i = 0; i < count; i++)
			our_fd_close(copies[i]);
	fd_lower();
	door_leave();
}

/* ---- without a thread for a while ---- */

bool
profiler_rest(void)
{
	struct timespec until = clock_timespec(clock_ns(CLOCK_REALTIME) + REST_WAIT_NS);
	int             cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	/* A handler of the thread that holds it may be who calls. */
	if (pthread_mutex_timedlock(&lock, &until)) {
		pthread_setcancelstate(cancel, NULL);
		return false;
	}
	holder_cancel = cancel;
	if (running && serve_pause(current))
		return true;
	door_leave();
	return false;
}

void
profiler_rest_end(void)
{
	if (serve_resume(current))
		end_by(serve_abandon);
	door_leave();
}

/* ---- profiles without a request ---- */

void
profiler_lend(uint64_t *ret_symbol_memory, int64_t *ret_max_seconds)
{
	const struct component_profiler_options usual = COMPONENT_PROFILER_OPTIONS_INIT, *o = &usual;

	door_enter();
	if (running)
		o = &current->options;
	else if (lent == 0) {
		debugdata_prepare();
		unwind_start(UNWIND_AUTO);
	}
	lent++;
	*ret_symbol_memory = o->symbol_memory_bytes;
	*ret_max_seconds = o->max_seconds;
	door_leave();
}

void
profiler_lend_end(void)
{
	door_enter();
	if (--lent == 0 && !running) {
		unwind_stop();
		collectors_forget();
	}
	door_leave();
}

bool
component_profiler_running(void)
{
	return running;
}

void
component_profiler_url(char *buf, size_t size)
{
	if (size == 0)
		return;
	door_enter();
	snprintf(buf, size, "%s", running ? current->url : "");
	door_leave();
}

int
profiler_set_rate(const struct collector *c, int64_t rate)
{
	int r;

	door_enter();
	r = rates_set(running ? current : NULL, c, rate);
	for (size_t i = 0; i < collector_count && !running && !r; i++) {
		if (collectors[i] == c) {
			called[i].is_given = true;
			called[i].rate = rate;
		}
	}
	door_leave();
	return r;
}

/* Of the collector whose member of the options that is. */
static int
set_rate_of(size_t option_at, int64_t rate)
{
	for (size_t i = 0; i < collector_count; i++)
		if (collectors[i]->rate && collectors[i]->rate->option_at == option_at)
			return profiler_set_rate(collectors[i], rate);
	return -ENOTSUP;
}

int
component_profiler_set_heap_rate(uint64_t bytes)
{
	return set_rate_of(offsetof(struct component_profiler_options, heap_rate_bytes), (int64_t)bytes);
}

int
component_profiler_set_mutex_fraction(int64_t fraction)
{
	return set_rate_of(offsetof(struct component_profiler_options, mutex_fraction), fraction);
}

int
component_profiler_set_block_rate(int64_t rate_ns)
{
	return set_rate_of(offsetof(struct component_profiler_options, block_rate_ns), rate_ns);
}

int
component_profiler_reload(struct component_error *err)
{
	struct serve *s;
	int           r = 0;

	door_enter();
	s = running ? current : NULL;
	if (s && s->options.token_file && *s->options.token_file)
		r = serve_token_read(s, &s->auth, s->options.token_file, err);
	door_leave();
	return r;
}

int
profiler_change(const struct component_profiler_options *o, enum profiler_fault *ret_fault,
	struct component_error *err)
{
	int r;

	door_enter();
	r = running ? serve_change(current, o, ret_fault, err) : -ENOTCONN;
	if (!r) {
		stack_table_set_limit(current->options.memory_bytes); /* *o may be shorter */
		symbols_keep(current->options.symbol_memory_bytes);
	}
	door_leave();
	return r;
}

int
component_profiler_change(const struct component_profiler_options *o, struct component_error *err)
{
	enum profiler_fault fault;

	return profiler_change(o, &fault, err);
}

int
component_profiler_check_token_file(const char *path, struct component_error *err)
{
	struct auth auth;
	char        warning[256];
	int         r;

	door_enter();
	auth_init(&auth);
	r = auth_token_read(&auth, path, warning, sizeof(warning), err);
	auth_release(&auth);
	door_leave();
	return r;
}

/* With the lock held. */
static int
start_survivor(struct serve *s)
{
	enum profiler_fault fault;
	struct timespec     pause = { .tv_nsec = REBIND_PAUSE_MS * 1000000L };
	int64_t             end = clock_ns(CLOCK_MONOTONIC) + REBIND_NS;
	int                 r;

	for (;;) {
		r = start(&s->options, s->is_worker, s->rates, &fault, NULL);
		if (r != -EADDRINUSE || clock_ns(CLOCK_MONOTONIC) >= end)
			return r;
		nanosleep(&pause, NULL);
	}
}

/* With the lock held. */
static int
start_worker(struct serve *s)
{
	enum profiler_fault fault;

	return start(&s->options, true, s->rates, &fault, NULL);
}

static int
after_fork(int (*restart)(struct serve *s))
{
	struct serve *s;
	int           r = 0;

	door_enter();
	s = parents;
	parents = NULL;
	if (s && !running) {
		for (size_t i = 0; i < collector_count; i++)
			if (called[i].is_given) /* in this child */
				s->rates[i] = called[i].rate;
		fd_raise();
		r = restart(s);
		fd_lower();
		if (r)
			parents = s; /* may be tried again */
	}
	door_leave();
	return r;
}

int
component_after_fork(void)
{
	return after_fork(start_survivor);
}

int
component_after_fork_worker(void)
{
	return after_fork(start_worker);
}
