/*
 * job.c - an answer that takes long: collected on a thread of its own, whatever the door.
 *
 *     job_start() --> run() of profile_request.c, symbol.c, ... on "component-job"
 *                       |  job_wait()          <-- on_hangup(), job_end_all(): end early
 *
 *     component-job: run() --job_write()--> fill --swap--> ready --+
 *                      ^ waits while ready is full                 | httpd_post()
 *     component-http:  deliver() --write() of the answer--> client <-+
 *                      ^ waits for on_drain while much is queued
 *
 * A thread for each job, made on demand and joined when its last byte is handed
 * over: a window is then plain code that waits, and there is nothing to tear down
 * when nobody asks.  max_requests bounds their number.
 *
 * Two buffers and the queue behind them bound what a slow client can make us hold
 * (JOB_CHUNK_BYTES * 2 + QUEUE_BYTES, at most ANSWER_QUEUE_BYTES_MAX); run() just waits, and
 * samplers hold nothing meanwhile, but for a large checkpoint (profile_request.c).  What fits one buffer is sent whole with Content-Length;
 * until the first swap run() may still fail with a clean status.
 *
 * What a stranger would get wrong:
 * - The answer belongs to the server's thread alone, and run() never sees it.  Without a
 *   server, for a descriptor, it is the job's own.
 * - deliver() comes from httpd_post_at(), on_drain and on_gone, and posting lends the job's own
 *   memory.  While "posted" says that a call is under way nothing else may deliver, since the
 *   last delivery frees the job.
 *
 * Tests: tests/http/protocol.t, tests/http/limits.t, tests/serve/start_stop.t.
 */
#include <config.h>

#include "job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "our_thread.h"
#include "pages.h"
#include "reply.h"
#include "serve.h"

#define QUEUE_BYTES (ANSWER_QUEUE_BYTES_MAX - 2 * JOB_CHUNK_BYTES - 1024) /* and a chunk's frame */

static void deliver(struct job *j);

static _Atomic uint64_t answered, answered_bytes;
_Atomic int64_t         serve_jobs;

uint64_t
profiler_answered(uint64_t *ret_bytes)
{
	*ret_bytes = answered_bytes;
	return answered;
}

static void
job_free(struct job *j)
{
	pthread_cond_destroy(&j->changed);
	pthread_mutex_destroy(&j->lock);
	pages_unmap(j, j->mapped_size);
}

/* ---- what the job's thread writes ---- */

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

/* With the lock held: has the server's thread look at the job, unless it is about to. */
static void
post(struct job *j)
{
	if (!j->posted)
		httpd_post_at(j->httpd, &j->posting, on_posted, j);
	j->posted = true;
}

/* Hands over what is written, the last of it or not.  -ECANCELED: nobody wants it. */
static int
job_hand_over(struct job *j, bool last)
{
	bool    gone;
	size_t  size = j->fill_size;
	int64_t r;

	if (!j->httpd) {
		j->fill_size = 0;
		r = j->answer->sink->write(j->answer, j->fill, size);
		return r < 0 ? (int)r : 0;
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
	if (last || !gone)
		post(j);
	pthread_mutex_unlock(&j->lock);
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
		if (j->fill_size == JOB_CHUNK_BYTES) {
			r = job_hand_over(j, false);
			if (r)
				return r;
		}
		n = JOB_CHUNK_BYTES - j->fill_size;
		if (n > size)
			n = size;
		memcpy(j->fill + j->fill_size, p, n);
		j->fill_size += n;
		p += n;
		size -= n;
	}
	return 0;
}

/* ---- the job's thread ---- */

void
job_fail(struct job *j, int status, const char *text)
{
	pthread_mutex_lock(&j->lock);
	j->fail_status = status;
	snprintf(j->fail_text, sizeof(j->fail_text), "%s", text);
	pthread_mutex_unlock(&j->lock);
}

int
job_flush(struct job *j)
{
	return j->fill_size ? job_hand_over(j, false) : 0;
}

bool
job_is_behind(struct job *j)
{
	bool behind;

	pthread_mutex_lock(&j->lock);
	behind = j->ready_full;
	pthread_mutex_unlock(&j->lock);
	return behind;
}

int
job_wait(struct job *j, int64_t until_ns)
{
	struct timespec until = clock_timespec(until_ns);
	int             r = 0;
	bool            gone, early;

	pthread_mutex_lock(&j->lock);
	while (!j->end_early && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&j->changed, &j->lock, &until);
	gone = j->gone;
	early = j->end_early;
	pthread_mutex_unlock(&j->lock);
	return gone ? -ECANCELED : !early;
}

const char *
job_ended_by(struct job *j)
{
	const char *why;

	pthread_mutex_lock(&j->lock);
	why = j->ended_by;
	pthread_mutex_unlock(&j->lock);
	return why;
}

static void *
run(void *arg)
{
	struct job *j = arg;
	int         r = j->spec.run(j);

	if (r < 0 && r != -ECANCELED && !j->fail_status)
		job_fail(j, 500, r == -ENOMEM ? "failed to collect profile: out of memory" : "failed to collect profile");
	job_hand_over(j, true);
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
	atomic_fetch_sub(&serve_jobs, 1);
	if (--s->job_count == 0)
		pthread_cond_broadcast(&s->idle);
	pthread_mutex_unlock(&s->lock);
}

/* Its thread has nothing left to do but return.  Once it has left the list nobody posts any more;
 * what job_end_all() has posted before frees it. */
static void
job_finish(struct job *j)
{
	bool posted;

	job_leave(j->serve, j);
	pthread_mutex_lock(&j->lock);
	posted = j->posted;
	j->done = true;
	pthread_mutex_unlock(&j->lock);
	if (!posted)
		job_free(j);
}

/* size: -1 when more is to come. */
static void
begin(struct job *j, int64_t size)
{
	const struct format *format = j->spec.format;
	bool                 binary = format && format->binary;
	const char          *type = binary ? SERVE_BINARY : format && format->mime ? format->mime : ANSWER_TEXT;
	char                 file[128];
	struct answer_header headers[6] = { { "Content-Type", type },
		{ "X-Content-Type-Options", "nosniff" } };
	size_t               n = 2;

	j->started = true;
	if (j->spec.headers) {
		j->answer->sink->begin(j->answer, 200, j->spec.headers, size);
		return;
	}
	if (*j->note)
		headers[n++] = (struct answer_header){ "X-Component-Threads", j->note };
	if (binary) {
		snprintf(file, sizeof(file), "attachment; filename=\"%s%s\"", j->spec.name,
			j->spec.delta ? "-delta" : "");
		headers[n++] = (struct answer_header){ "Content-Disposition", file };
		if (j->spec.checkpoint_ns)
			headers[n++] = (struct answer_header){ "X-Component-Checkpoints", "gzip members, of which the last is all of it" };
	}
	j->answer->sink->begin(j->answer, 200, headers, size);
}

/* The last of it: everything, an error, or nothing because nobody listens. */
static void
deliver_last(struct job *j)
{
	if (j->spec.format && !j->gone && !j->fail_status) {
		answered++;
		answered_bytes += j->bytes;
	}
	pthread_join(j->thread, NULL); /* whoever has the answer finds no thread of it any more */
	if (j->gone || (j->fail_status && j->started)) {
		j->answer->sink->abort(j->answer);
	} else if (j->fail_status) {
		reply_error(j->answer, j->fail_status, j->fail_text);
	} else {
		if (!j->started)
			begin(j, (int64_t)j->ready_size);
		j->answer->sink->write(j->answer, j->ready, j->ready_size);
		j->answer->sink->end(j->answer);
	}
	job_finish(j);
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
	bool full, finished, gone, posted;

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
	if (!j->started)
		begin(j, -1);
	if (j->answer->sink->write(j->answer, j->ready, j->ready_size) > QUEUE_BYTES) {
		j->throttled = true;
		j->answer->on_drain = on_drain;
	}
	pthread_mutex_lock(&j->lock);
	j->ready_full = false;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
}

static void
job_end(struct job *j, bool abort, const char *why)
{
	pthread_mutex_lock(&j->lock);
	if (!j->end_early)
		j->ended_by = why;
	j->end_early = true;
	j->gone = j->gone || abort;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
}

/* FIN: Go ends a window then and answers; snapshots do not care. */
static void
on_hangup(void *arg)
{
	job_end(arg, false, NULL);
}

static void
on_gone(void *arg)
{
	job_end(arg, true, NULL);
	deliver(arg); /* its end, if run() is over */
}

static struct job *
job_new(struct serve *s, struct answer *a, const struct job_spec *spec, const uint64_t *symbol_memory)
{
	pthread_condattr_t attr;
	size_t             size = sizeof(struct job) + spec->input_size + 1;
	struct job        *j;

	j = pages_map(size);
	if (!j)
		return NULL;
	j->mapped_size = size;
	j->serve = s;
	j->httpd = s ? s->httpd : NULL;
	j->symbol_memory = symbol_memory;
	j->answer = a;
	j->spec = *spec;
	if (spec->input)
		memcpy(j->input, spec->input, spec->input_size);
	j->spec.input = j->input;
	snprintf(j->peer, sizeof(j->peer), "%s", a->ask.peer);
	pthread_mutex_init(&j->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&j->changed, &attr);
	pthread_condattr_destroy(&attr);
	return j;
}

static void
refuse(struct answer *a, const char *text)
{
	reply_error_with(a, 503, text, "Retry-After", "1");
}

/* Enters the list; a text when it may not. */
static const char *
job_enter(struct serve *s, struct job *j)
{
	const char *why = NULL;

	pthread_mutex_lock(&s->lock);
	if (s->closed) {
		why = s->closed;
	} else if (s->job_count >= __atomic_load_n(&s->options.max_requests, __ATOMIC_RELAXED)) {
		why = "too many profiles are being collected at the same time (--profiling-max-requests); try again later";
	} else {
		j->next = s->jobs;
		if (j->next)
			j->next->previous = j;
		s->jobs = j;
		s->job_count++;
		atomic_fetch_add(&serve_jobs, 1);
	}
	pthread_mutex_unlock(&s->lock);
	return why;
}

void
job_start(struct serve *s, struct answer *a, const struct job_spec *spec)
{
	struct job *j = job_new(s, a, spec, &s->options.symbol_memory_bytes);
	const char *why;

	if (!j) {
		refuse(a, "out of memory");
		return;
	}
	why = job_enter(s, j);
	if (why) {
		job_free(j);
		refuse(a, why);
		return;
	}
	if (our_thread_start("component-job", run, j, &j->thread)) {
		job_leave(s, j);
		job_free(j);
		refuse(a, "no thread can be made for this request; see the limits of processes and of memory");
		return;
	}
	a->on_hangup = on_hangup;
	a->on_gone = on_gone;
	a->arg = j;
}

/* ---- without a server ---- */

static void *
run_alone(void *arg)
{
	struct job *j = arg;

	j->result = j->spec.run(j);
	if (!j->result)
		j->result = job_hand_over(j, true);
	return NULL;
}

int
job_run_alone(struct answer *to, const struct job_spec *spec, uint64_t symbol_memory, char *why, size_t size)
{
	struct job *j = job_new(NULL, to, spec, &symbol_memory);
	int         r;

	if (!j)
		return -ENOMEM;
	r = our_thread_start("component-job", run_alone, j, &j->thread);
	if (r) {
		snprintf(why, size, "no thread can be made; see the limits of processes and of memory");
	} else {
		pthread_join(j->thread, NULL);
		r = j->result;
		snprintf(why, size, "%s", j->fail_text);
	}
	job_free(j);
	return r;
}

size_t
job_end_all(struct serve *s, bool abort, const char *why)
{
	size_t n = 0;

	pthread_mutex_lock(&s->lock);
	for (struct job *j = s->jobs; j; j = j->next, n++) {
		job_end(j, abort, why);
		if (!abort)
			continue;
		pthread_mutex_lock(&j->lock);
		post(j); /* it may be waiting for a slow client alone */
		pthread_mutex_unlock(&j->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return n;
}

size_t
job_end_window(struct serve *s, const char *name)
{
	size_t n = 0;

	pthread_mutex_lock(&s->lock);
	for (struct job *j = s->jobs; j; j = j->next)
		if (*name && !strcmp(j->spec.window, name)) {
			job_end(j, false, NULL);
			n++;
		}
	pthread_mutex_unlock(&s->lock);
	return n;
}
