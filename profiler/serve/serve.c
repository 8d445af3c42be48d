/*
 * serve.c - one server's life: bind, say so, answer, end.
 *
 * Everything that can fail because of what a person wrote comes before the first
 * thread: options, token, addresses.  The end goes the other way round: listeners,
 * then windows (early, each with a valid profile), then jobs whose client does not
 * read, then the server's thread, then memory.
 *
 * Other options for a server that runs: what can change in place does, so that no window
 * ends because somebody raised a limit.  What a stranger would get wrong: a token file or an
 * address that cannot be had must be found out before anything has changed.
 *
 * Tests: tests/serve/start_stop.t, tests/components/profiling.t, tests/components/reload.t.
 */
#include <config.h>

#include "serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "addresses.h"
#include "clock.h"
#include "expected_library.h"
#include "fd.h"
#include "job.h"
#include "options.h"
#include "routes.h"
#include "seccomp.h"
#include "unwind.h"

#define GRACE_MS      5000 /* for open requests when the server stops */
#define PAUSE_MS      5000 /* for windows that end early, and again for who does not read */
#define STOP_FLUSH_MS 1000 /* for the last bytes of replies that are complete */

/* zlib's; only its address is taken, so its type does not matter. */
extern void deflate(void);

static int
zlib_check(struct component_error *err)
{
	static const char *const library[] = { "libz.", "libz-", NULL };

	return expected_library_check((const void *)(uintptr_t)deflate, "deflate", library, err);
}

static void
token_warn(const struct serve *s, const char *file, const char *warning)
{
	struct component_log_field field = { "file", file };

	if (*warning)
		serve_log(s, COMPONENT_LOG_WARNING, warning, &field, 1);
}

int
serve_token_read(const struct serve *s, struct auth *a, const char *file, struct component_error *err)
{
	char warning[256];
	int  r = auth_token_read(a, file, warning, sizeof(warning), err);

	if (!r)
		token_warn(s, file, warning);
	return r;
}

static struct serve *
serve_new(void)
{
	struct serve      *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;

	if (!s)
		return NULL;
	auth_init(&s->auth);
	our_fd_keep(&s->record.fd, -1);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->idle, &attr);
	pthread_condattr_destroy(&attr);
	return s;
}

/* Jobs are left only when the program has closed our descriptors: their threads end,
 * but nobody can collect them, and they keep what they use. */
void
serve_free(struct serve *s)
{
	if (s->job_count > 0)
		return;
	options_release(&s->options);
	auth_release(&s->auth);
	pthread_cond_destroy(&s->idle);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* A copy, in a worker with what it has in the place of its parent's addresses. */
static int
own_options(const struct serve *s, struct component_profiler_options *to, const struct component_profiler_options *from,
	struct component_error *err)
{
	int r = options_copy(to, from, err);

	if (!r && s->is_worker) {
		r = addresses_of_worker(to);
		if (r)
			options_release(to);
	}
	return r;
}

/* All that can fail because of what a person wrote; no thread yet. */
int
serve_bind(const struct component_profiler_options *o, bool is_worker, struct serve **ret, enum profiler_fault *ret_fault,
	struct component_error *err)
{
	struct serve *s = serve_new();
	char          warning[256];
	int           r = -ENOMEM;

	if (!s)
		return r;
	s->is_worker = is_worker;
	r = own_options(s, &s->options, o, err);
	if (r)
		goto out;
	r = zlib_check(err);
	if (r)
		goto out;
	r = auth_token_read(&s->auth, s->options.token_file, warning, sizeof(warning), err);
	if (r)
		goto out;
	r = addresses_bind(s, ret_fault, err);
	if (r)
		goto out;
	token_warn(s, s->options.token_file, warning); /* once: a port that is held is tried again and again */
	*ret = s;
	s = NULL;
out:
	if (s)
		serve_free(s);
	return r;
}

bool
serve_is_for_all(struct serve *s)
{
	return s->exposed && auth_token_ok(&s->auth, NULL, NULL);
}

unsigned
serve_requests(const struct component_profiler_options *o)
{
	int64_t n = __atomic_load_n(&o->max_requests, __ATOMIC_RELAXED);

	return n < HTTPD_REQUESTS_MAX ? (unsigned)n : HTTPD_REQUESTS_MAX;
}

static void
deafen(struct serve *s, bool deaf)
{
	int                        r = addresses_deafen(s, deaf);
	struct component_log_field why = { "error", strerror(-r) };

	if (r)
		serve_log(s, COMPONENT_LOG_ERROR, deaf ? "cannot stop listening" : "cannot listen again", &why, 1);
}

/* Profiling off: nothing is sampled, windows end, and no port answers. */
static void
turn(struct serve *s, bool on)
{
	if (on == !s->off)
		return;
	if (!on)
		job_end_all(s, false, "profiling was switched off meanwhile");
	deafen(s, !on);
	for (size_t i = 0; i < collector_count; i++)
		if (collectors[i]->rate)
			collectors[i]->rate->set(s->off ? 0 : __atomic_load_n(&s->rates[i], __ATOMIC_RELAXED));
}

/* A turn makes system calls that a filter of the program's may forbid. */
static void
on_look(void *arg)
{
	struct serve *s = arg;
	int           word;

	if (s->off) /* the program may have closed all, which were made anew and listen */
		httpd_deafen(s->httpd, (void *)s->tcp.tag, true, &s->tcp.now);
	if (!s->heeds_record || !record_has_word(&s->record))
		return;
	fd_raise(); /* the program's numbers stay what they are */
	seccomp_look();
	if (seccomp_on())
		s->heeds_record = false;
	else if ((word = record_word(&s->record)))
		turn(s, word > 0);
	fd_lower();
}

int
serve_open(struct serve *s, struct component_error *err)
{
	struct httpd_options o = {
		.on_look = on_look,
		.thread_name = "component-http",
		.on_request = routes_on_request,
		.body_max = routes_body_max,
		.requests = serve_requests(&s->options),
		.arg = s,
		.log = s->options.log,
		.log_arg = s->options.log_arg,
	};
	int r = httpd_start(&o, &s->httpd, err);

	return r ? r : addresses_open(s, err);
}

int
serve_announce(struct serve *s, struct component_error *err)
{
	int r = addresses_port_file(s, err);

	if (!r) {
		addresses_announce(s);
		s->heeds_record = true;
	}
	return r;
}

/* True when all jobs have ended in time; ms: -1 for ever. */
static bool
jobs_wait(struct serve *s, int64_t ms)
{
	struct timespec until = clock_timespec(clock_ns(CLOCK_MONOTONIC) + ms * 1000000);
	int             r = 0;
	bool            ended;

	pthread_mutex_lock(&s->lock);
	while (s->job_count > 0 && r != ETIMEDOUT)
		r = ms < 0 ? pthread_cond_wait(&s->idle, &s->lock) : pthread_cond_timedwait(&s->idle, &s->lock, &until);
	ended = s->job_count == 0;
	pthread_mutex_unlock(&s->lock);
	return ended;
}

bool
serve_has_jobs(struct serve *s)
{
	bool has;

	pthread_mutex_lock(&s->lock);
	has = s->job_count > 0;
	pthread_mutex_unlock(&s->lock);
	return has;
}

static void
close_for_jobs(struct serve *s, const char *why)
{
	pthread_mutex_lock(&s->lock);
	s->closed = why;
	pthread_mutex_unlock(&s->lock);
}

bool
serve_ends(struct serve *s)
{
	if (!atomic_exchange(&s->is_ending, true)) {
		close_for_jobs(s, "the program is ending");
		job_end_all(s, false, SERVE_ENDED);
	}
	return serve_has_jobs(s) || httpd_owed(s->httpd);
}

bool
serve_pause(struct serve *s)
{
	close_for_jobs(s, "the program is just changing its credentials or namespaces; try again");
	job_end_all(s, false, "the program changed its credentials or namespaces meanwhile");
	if (!jobs_wait(s, PAUSE_MS))
		job_end_all(s, true, NULL);
	/* The server's thread is the last: it may have to send on what all of them have open. */
	if (jobs_wait(s, PAUSE_MS) && unwind_pause()) {
		if (httpd_pause(s->httpd, clock_ns(CLOCK_MONOTONIC) + PAUSE_MS * INT64_C(1000000)) == 0)
			return true;
		unwind_resume();
	}
	close_for_jobs(s, NULL);
	return false;
}

int
serve_resume(struct serve *s)
{
	int r;

	close_for_jobs(s, NULL);
	r = httpd_resume(s->httpd);
	if (!r)
		unwind_resume();
	return r;
}

void
serve_stop(struct serve *s)
{
	bool lost;

	close_for_jobs(s, "the profiling server is stopping");
	lost = s->httpd && httpd_unlisten(s->httpd, NULL) == -EBADF;
	job_end_all(s, lost, "the profiling server stopped meanwhile");
	if (!lost && !jobs_wait(s, GRACE_MS)) {
		job_end_all(s, true, NULL);
		jobs_wait(s, -1);
	}
	httpd_stop_at(&s->httpd, STOP_FLUSH_MS);
	addresses_close(s);
}

void
serve_forked(struct serve *s)
{
	httpd_forked(s->httpd);
	addresses_forked(s);
}

/* As in a child: its memory stays. */
void
serve_abandon(struct serve *s)
{
	record_remove(&s->record);
	serve_forked(s);
}

/* ---- other options ---- */

int
serve_change(struct serve *s, const struct component_profiler_options *o, enum profiler_fault *ret_fault,
	struct component_error *err)
{
	struct component_profiler_options fresh;
	struct auth                       auth;
	bool                              token_first;
	int                               r = own_options(s, &fresh, o, err);

	if (r)
		return r;
	auth_init(&auth);
	r = serve_token_read(s, &auth, fresh.token_file, err);
	if (r)
		goto out;
	/* While addresses come and go a token is asked for, if one was or one will be. */
	token_first = auth.token_size > 0;
	if (token_first)
		auth_token_swap(&s->auth, &auth);
	r = addresses_change(s, &fresh, ret_fault, err);
	if (r < 0) {
		if (token_first)
			auth_token_swap(&s->auth, &auth);
		goto out;
	}
	if (!token_first)
		auth_token_swap(&s->auth, &auth);
	pthread_mutex_lock(&s->auth.lock);
	options_change(&s->options, &fresh);
	pthread_mutex_unlock(&s->auth.lock);
	httpd_set_requests(s->httpd, serve_requests(&s->options));
	if (r > 0)
		addresses_announce(s);
	r = 0;
out:
	auth_release(&auth);
	options_release(&fresh);
	return r;
}
