/*
 * job.c - an answer that takes long: collected on a thread of its own, whatever the door.
 *
 *     job_start() --> run() of collect.c, symbol.c, ... on "component-job"
 *                       |  job_wait()          <-- on_hangup(), job_end_all(): end early
 *                       +- job_write() --> job_stream.c --> the client
 *
 * A thread for each job, made on demand and joined when its last byte is handed
 * over: a window is then plain code that waits, and there is nothing to tear down
 * when nobody asks.  max_requests bounds their number.
 *
 * What a stranger would get wrong: the answer belongs to the server's thread alone, and run()
 * never sees it.  Without a server, for a descriptor, it is the job's own.
 *
 * Tests: tests/http/protocol.t, tests/http/limits.t, tests/serve/start_stop.t.
 */
#include <config.h>

#include "job_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "clock.h"
#include "own_thread.h"
#include "pages.h"
#include "reply.h"

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

uint64_t
job_symbol_memory(const struct job *j)
{
	return j->serve ? j->serve->options.symbol_memory_bytes : j->symbol_memory;
}

void
job_log(const struct job *j, const char *message, const struct component_log_field *fields, size_t count)
{
	if (j->serve)
		serve_log(j->serve, COMPONENT_LOG_INFO, message, fields, count);
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

void
job_free(struct job *j)
{
	pthread_cond_destroy(&j->changed);
	pthread_mutex_destroy(&j->lock);
	munmap(j, j->mapped_size);
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
job_wait(struct job *j)
{
	struct timespec until;
	int64_t         end;
	int             r = 0;
	bool            gone;

	if (__builtin_add_overflow(clock_ns(CLOCK_MONOTONIC), j->spec.wait_ns, &end))
		end = INT64_MAX;
	until = clock_timespec(end);
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
	if (--s->job_count == 0)
		pthread_cond_broadcast(&s->idle);
	pthread_mutex_unlock(&s->lock);
}

/* Once it has left the list nobody
 * posts any more; what job_end_all() has posted before frees it. */
void
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
	job_end(arg, true);
	job_abandon(arg);
}

static struct job *
job_new(struct serve *s, struct answer *a, const struct job_spec *spec)
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
	if (s->stopping) {
		why = "the profiling server is stopping";
	} else if (s->job_count >= __atomic_load_n(&s->options.max_requests, __ATOMIC_RELAXED)) {
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
job_start(struct serve *s, struct answer *a, const struct job_spec *spec)
{
	struct job *j = job_new(s, a, spec);
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
	if (own_thread_start("component-job", run, j, &j->thread)) {
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
	struct job *j = job_new(NULL, to, spec);
	int         r;

	if (!j)
		return -ENOMEM;
	j->symbol_memory = symbol_memory;
	r = own_thread_start("component-job", run_alone, j, &j->thread);
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

void
job_end_all(struct serve *s, bool abort)
{
	pthread_mutex_lock(&s->lock);
	for (struct job *j = s->jobs; j; j = j->next) {
		job_end(j, abort);
		if (abort)
			job_nudge(j); /* it may be waiting for a slow client alone */
	}
	pthread_mutex_unlock(&s->lock);
}
