/*
 * job_stream.c - the answer of a job on its way out.
 *
 *     component-job: run() --job_write()--> fill --swap--> ready --+
 *                      ^ waits while ready is full                 | httpd_post()
 *     component-http:  deliver() --write() of the answer--> client <-+
 *                      ^ waits for on_drain while much is queued
 *
 * Two buffers and the queue behind them bound what a slow client can make us hold
 * (JOB_CHUNK_BYTES * 2 + QUEUE_BYTES, at most ANSWER_QUEUE_BYTES_MAX); run() just waits, and
 * samplers hold nothing meanwhile.  What fits one buffer is sent whole with Content-Length;
 * until the first swap run() may still fail with a clean status.
 *
 * What a stranger would get wrong: deliver() comes from httpd_post_at() and from on_drain,
 * and posting lends the job's own memory.  While "posted" says that a call is under way
 * nothing else may deliver, since the last delivery frees the job.
 *
 * Tests: tests/http/protocol.t, tests/http/limits.t.
 */
#include <config.h>

#include "job_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "reply.h"

#define QUEUE_BYTES (ANSWER_QUEUE_BYTES_MAX - 2 * JOB_CHUNK_BYTES - 1024) /* and a chunk's frame */

static void deliver(struct job *j);

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

void
job_nudge(struct job *j)
{
	bool needed;

	pthread_mutex_lock(&j->lock);
	needed = post_needed(j);
	pthread_mutex_unlock(&j->lock);
	if (needed)
		post(j);
}

int
job_hand_over(struct job *j, bool last)
{
	bool    needed, gone;
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

/* ---- the server's thread ---- */

/* size: -1 when more is to come. */
static void
begin(struct job *j, int64_t size)
{
	bool                 binary = j->spec.format && j->spec.format->binary;
	char                 file[128];
	struct answer_header headers[5] = { { "Content-Type", binary ? SERVE_BINARY : ANSWER_TEXT },
		{ "X-Content-Type-Options", "nosniff" } };
	size_t               n = 2;

	if (*j->note)
		headers[n++] = (struct answer_header){ "X-Component-Threads", j->note };
	if (binary) {
		snprintf(file, sizeof(file), "attachment; filename=\"%s%s\"", j->spec.name,
			j->spec.delta ? "-delta" : "");
		headers[n++] = (struct answer_header){ "Content-Disposition", file };
	}
	j->answer->sink->begin(j->answer, 200, headers, size);
	j->started = true;
}

/* The last of it: everything, an error, or nothing because nobody listens. */
static void
deliver_last(struct job *j)
{
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

void
job_abandon(struct job *j)
{
	bool last;

	pthread_mutex_lock(&j->lock);
	last = j->finished && !j->posted;
	pthread_mutex_unlock(&j->lock);
	if (last)
		deliver_last(j);
}
