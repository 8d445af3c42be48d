/*
 * job.c - an answer that takes long: collected on a thread of its own, streamed by
 * the server's, or written to a descriptor where nobody has asked by HTTP.
 *
 *     component-job: run() --job_write()--> fill --swap--> ready --+
 *                      ^ waits while ready is full                 | httpd_post()
 *     component-http:  deliver() --httpd_reply_write()--> socket <-+
 *                      ^ waits for on_drain while much is queued
 *
 * Two buffers and the queue behind them bound what a slow client can make us hold
 * (CHUNK_BYTES * 2 + QUEUE_BYTES, at most HTTPD_QUEUE_BYTES_MAX); run() just waits, and samplers
 * hold nothing meanwhile.  What fits one buffer is sent whole with Content-Length;
 * until the first swap run() may still fail with a clean status.
 *
 * A thread for each job, made on demand and joined when its last byte is handed
 * over: a window is then plain code that waits, and there is nothing to tear down
 * when nobody asks.  max_requests bounds their number.
 *
 * What a stranger would get wrong:
 * - The request belongs to the server's thread alone.  run() never sees it.
 * - deliver() comes from httpd_post_at() and from on_drain, and posting lends the
 *   job's own memory.  While "posted" says that a call is under way nothing else may
 *   deliver, since the last delivery frees the job.
 *
 * Tests: tests/serve_http.t, tests/serve_limits.t, tests/serve_life.t.
 */
#include <config.h>

#include "serve.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "own_thread.h"

#define CHUNK_BYTES (32 * 1024)
#define STALLED_MS  60000 /* a descriptor that takes nothing: the rest is dropped */
#define QUEUE_BYTES (HTTPD_QUEUE_BYTES_MAX - 2 * CHUNK_BYTES - 1024) /* and a chunk's frame */

struct job {
	struct job   *next, *previous; /* serve.lock */
	struct serve *serve;
	struct httpd *httpd; /* there as long as jobs are, even when serve's is not */
	int           fd;    /* -1: the answer goes to the request */
	struct job_spec spec;
	char          peer[HTTPD_PEER_MAX];
	pthread_t     thread;

	/* The server's thread. */
	struct httpd_request *request;
	bool          started;   /* the header is out */
	bool          throttled; /* waiting for on_drain */

	/* The job's thread. */
	size_t        fill_size;
	uint64_t      bytes;
	bool          overflowed; /* more than one chunk: the status is sent */

	pthread_mutex_t lock; /* the rest */
	pthread_cond_t  changed;
	bool          end_early, gone, ready_full, finished, posted, done;
	struct httpd_posted posting; /* posted */
	size_t        ready_size;
	int           fail_status;
	char          fail_text[256];
	size_t        mapped_size;
	char          note[JOB_NOTE_BYTES]; /* of run(), before it writes */
	char          fill[CHUNK_BYTES], ready[CHUNK_BYTES];
	char          input[]; /* spec.input */
};

static void deliver(struct job *j);

const struct job_spec *
job_spec(const struct job *j)
{
	return &j->spec;
}

struct serve *
job_serve(const struct job *j)
{
	return j->serve;
}

const char *
job_peer(const struct job *j)
{
	return j->peer;
}

uint64_t
job_bytes(const struct job *j)
{
	return j->bytes;
}

static void
job_free(struct job *j)
{
	pthread_cond_destroy(&j->changed);
	pthread_mutex_destroy(&j->lock);
	munmap(j, j->mapped_size);
}

/* ---- the job's thread ---- */

static void
on_posted(void *arg)
{
	struct job *j = arg;
	bool        done;

	pthread_mutex_lock(&j->lock);
	j->posted = false;
	done = j->done;
	pthread_mutex_unlock(&j->lock);
	if (done)
		job_free(j);
	else
		deliver(j);
}

/* With the lock held; true: the caller posts after unlocking. */
static bool
post_needed(struct job *j)
{
	bool needed = !j->posted;

	j->posted = true;
	return needed;
}

static void
post(struct job *j)
{
	httpd_post_at(j->httpd, &j->posting, on_posted, j);
}

static int
fd_write(int fd, const char *data, size_t size)
{
	struct pollfd room = { fd, POLLOUT, 0 };
	ssize_t       n;

	while (size > 0) {
		n = write(fd, data, size);
		if (n >= 0) {
			data += n;
			size -= (size_t)n;
		} else if (errno == EAGAIN) {
			if (poll(&room, 1, STALLED_MS) == 0)
				return -ETIMEDOUT;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

/* Hands fill over.  -ECANCELED: nobody wants it. */
static int
swap(struct job *j, bool last)
{
	bool   needed, gone;
	size_t size = j->fill_size;

	if (j->fd >= 0) {
		j->fill_size = 0;
		return fd_write(j->fd, j->fill, size);
	}
	pthread_mutex_lock(&j->lock);
	while (j->ready_full && !j->gone)
		pthread_cond_wait(&j->changed, &j->lock);
	gone = j->gone;
	if (!gone) {
		memcpy(j->ready, j->fill, j->fill_size);
		j->ready_size = j->fill_size;
		j->ready_full = true;
		j->fill_size = 0;
	}
	j->finished = last;
	needed = (last || !gone) && post_needed(j);
	pthread_mutex_unlock(&j->lock);
	if (needed)
		post(j);
	return gone ? -ECANCELED : 0;
}

int
job_write(void *job, const void *data, size_t size)
{
	struct job *j = job;
	const char *p = data;
	size_t      n;
	int         r;

	j->bytes += size;
	while (size > 0) {
		if (j->fill_size == CHUNK_BYTES) {
			j->overflowed = true;
			r = swap(j, false);
			if (r)
				return r;
		}
		n = CHUNK_BYTES - j->fill_size;
		if (n > size)
			n = size;
		memcpy(j->fill + j->fill_size, p, n);
		j->fill_size += n;
		p += n;
		size -= n;
	}
	return 0;
}

void
job_fail(struct job *j, int status, const char *text)
{
	pthread_mutex_lock(&j->lock);
	j->fail_status = status;
	snprintf(j->fail_text, sizeof(j->fail_text), "%s", text);
	pthread_mutex_unlock(&j->lock);
}

int
job_wait(struct job *j)
{
	struct timespec until;
	int             r = 0;
	bool            gone;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += j->spec.wait_ns / 1000000000;
	until.tv_nsec += j->spec.wait_ns % 1000000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&j->lock);
	while (!j->end_early && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&j->changed, &j->lock, &until);
	gone = j->gone;
	pthread_mutex_unlock(&j->lock);
	return gone ? -ECANCELED : 0;
}

void
job_note(struct job *j, const char *text)
{
	snprintf(j->note, sizeof(j->note), "%s", text);
}

static void *
run(void *arg)
{
	struct job *j = arg;
	int         r = j->spec.run(j);

	if (r < 0 && r != -ECANCELED && !j->fail_status)
		job_fail(j, 500, r == -ENOMEM ? "failed to collect profile: out of memory" : "failed to collect profile");
	swap(j, true);
	return NULL;
}

/* ---- the server's thread ---- */

static void
job_leave(struct serve *s, struct job *j)
{
	pthread_mutex_lock(&s->lock);
	if (j->previous)
		j->previous->next = j->next;
	else
		s->jobs = j->next;
	if (j->next)
		j->next->previous = j->previous;
	if (--s->job_count == 0)
		pthread_cond_broadcast(&s->idle);
	pthread_mutex_unlock(&s->lock);
}

/* Its thread has nothing left to do but return.  Once it has left the list nobody
 * posts any more; what job_end_all() has posted before frees it. */
static void
finish(struct job *j)
{
	bool posted;

	pthread_join(j->thread, NULL);
	job_leave(j->serve, j);
	pthread_mutex_lock(&j->lock);
	posted = j->posted;
	j->done = true;
	pthread_mutex_unlock(&j->lock);
	if (!posted)
		job_free(j);
}

static void
headers_set(struct job *j)
{
	char value[128];

	httpd_set_header(j->request, "X-Content-Type-Options", "nosniff");
	if (*j->note)
		httpd_set_header(j->request, "X-Component-Threads", j->note);
	if (j->spec.format != JOB_PPROF)
		return;
	snprintf(value, sizeof(value), "attachment; filename=\"%s%s\"", j->spec.kind->name,
		j->spec.run == delta_run ? "-delta" : "");
	httpd_set_header(j->request, "Content-Disposition", value);
}

static const char *
content_type(const struct job *j)
{
	return j->spec.format == JOB_PPROF ? SERVE_BINARY : SERVE_TEXT;
}

/* The last of it: everything, an error, or nothing because nobody listens. */
static void
deliver_last(struct job *j)
{
	if (j->gone || (j->fail_status && j->started)) {
		httpd_reply_abort(j->request);
	} else if (j->fail_status) {
		reply_error(j->request, j->fail_status, j->fail_text);
	} else if (!j->started) {
		headers_set(j);
		httpd_reply(j->request, 200, content_type(j), j->ready, j->ready_size);
	} else {
		httpd_reply_write(j->request, j->ready, j->ready_size);
		httpd_reply_end(j->request);
	}
	finish(j);
}

static void
on_drain(void *arg)
{
	struct job *j = arg;

	j->throttled = false;
	deliver(j);
}

static void
deliver(struct job *j)
{
	bool   full, finished, gone, posted;
	size_t queued;

	pthread_mutex_lock(&j->lock);
	full = j->ready_full;
	finished = j->finished;
	gone = j->gone;
	posted = j->posted;
	pthread_mutex_unlock(&j->lock);
	if (posted) /* that one delivers, and its memory must last until then */
		return;
	if (finished && (gone || !j->throttled)) {
		deliver_last(j);
		return;
	}
	if (gone || j->throttled || !full)
		return;
	if (!j->started) {
		headers_set(j);
		httpd_reply_start(j->request, 200, content_type(j));
		j->started = true;
	}
	queued = httpd_reply_write(j->request, j->ready, j->ready_size);
	if (queued > QUEUE_BYTES) {
		j->throttled = true;
		httpd_on_drain(j->request, on_drain, j);
	}
	pthread_mutex_lock(&j->lock);
	j->ready_full = false;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
}

static void
job_end(struct job *j, bool abort)
{
	pthread_mutex_lock(&j->lock);
	j->end_early = true;
	j->gone = j->gone || abort;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
}

/* FIN: Go ends a window then and answers; snapshots do not care. */
static void
on_hangup(void *arg)
{
	job_end(arg, false);
}

static void
on_gone(void *arg)
{
	struct job *j = arg;
	bool        last;

	job_end(j, true);
	pthread_mutex_lock(&j->lock);
	last = j->finished && !j->posted;
	pthread_mutex_unlock(&j->lock);
	if (last)
		deliver_last(j);
}

static struct job *
job_new(struct serve *s, struct httpd_request *r, const struct job_spec *spec)
{
	pthread_condattr_t attr;
	size_t             size = sizeof(struct job) + spec->input_size + 1;
	struct job        *j;

	j = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (j == MAP_FAILED)
		return NULL;
	j->mapped_size = size;
	j->serve = s;
	j->httpd = s->httpd;
	j->fd = -1;
	j->request = r;
	j->spec = *spec;
	if (spec->input)
		memcpy(j->input, spec->input, spec->input_size);
	j->spec.input = j->input;
	snprintf(j->peer, sizeof(j->peer), "%s", r ? httpd_peer(r) : "");
	pthread_mutex_init(&j->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&j->changed, &attr);
	pthread_condattr_destroy(&attr);
	return j;
}

static void
refuse(struct httpd_request *r, const char *text)
{
	httpd_set_header(r, "Retry-After", "1");
	reply_error(r, 503, text);
}

/* Enters the list; a text when it may not. */
static const char *
job_enter(struct serve *s, struct job *j)
{
	const char *why = NULL;

	pthread_mutex_lock(&s->lock);
	if (s->stopping) {
		why = "the profiling server is stopping";
	} else if (s->job_count >= s->options.max_requests) {
		why = "too many profiles are being collected at the same time (--profiling-max-requests); try again later";
	} else {
		j->next = s->jobs;
		if (j->next)
			j->next->previous = j;
		s->jobs = j;
		s->job_count++;
	}
	pthread_mutex_unlock(&s->lock);
	return why;
}

void
job_start(struct serve *s, struct httpd_request *r, const struct job_spec *spec)
{
	struct job *j = job_new(s, r, spec);
	const char *why;

	if (!j) {
		refuse(r, "out of memory");
		return;
	}
	why = job_enter(s, j);
	if (why) {
		job_free(j);
		refuse(r, why);
		return;
	}
	if (own_thread_start("component-job", run, j, &j->thread)) {
		job_leave(s, j);
		job_free(j);
		refuse(r, "no thread can be made for this request; see the limits of processes and of memory");
		return;
	}
	httpd_on_hangup(r, on_hangup, j);
	httpd_on_gone(r, on_gone, j);
}

/* ---- without a request ---- */

struct alone {
	struct job *job;
	int         result;
};

static void *
run_alone(void *arg)
{
	struct alone *a = arg;

	a->result = a->job->spec.run(a->job);
	if (!a->result)
		a->result = swap(a->job, true);
	return NULL;
}

int
job_run_alone(struct serve *s, const struct job_spec *spec, int fd, char *why, size_t size)
{
	struct alone a = { job_new(s, NULL, spec), 0 };
	pthread_t    thread;
	int          r;

	if (!a.job)
		return -ENOMEM;
	a.job->fd = fd;
	r = own_thread_start("component-job", run_alone, &a, &thread);
	if (r) {
		snprintf(why, size, "no thread can be made; see the limits of processes and of memory");
	} else {
		pthread_join(thread, NULL);
		r = a.result;
		snprintf(why, size, "%s", a.job->fail_text);
	}
	job_free(a.job);
	return r;
}

void
job_end_all(struct serve *s, bool abort)
{
	bool needed;

	pthread_mutex_lock(&s->lock);
	for (struct job *j = s->jobs; j; j = j->next) {
		job_end(j, abort);
		pthread_mutex_lock(&j->lock);
		needed = abort && post_needed(j); /* it may be waiting for a slow client alone */
		pthread_mutex_unlock(&j->lock);
		if (needed)
			post(j);
	}
	pthread_mutex_unlock(&s->lock);
}
