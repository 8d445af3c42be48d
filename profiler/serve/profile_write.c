/*
 * profile_write.c - any profile to a descriptor, without HTTP.
 *
 *     options --> profile_request.c --> a job that answers to fd (answer_fd.c)
 *
 * The options ask for the same as a query would over HTTP, so that both doors have one set of
 * rules, and the job is the one that a request starts: its thread is ours, blocks all signals,
 * and is none that a profile shows.  So a reader that is gone is -EPIPE and no SIGPIPE to the
 * daemon, and nothing of the caller's thread is in the way.
 *
 * What a stranger would get wrong: profiles that grow from a rate are valid and empty
 * over HTTP while that rate is 0, as in Go.  Who writes one by a call has asked for
 * something, and is told why there is nothing.
 *
 * Tests: tests/serve/test_profile_write.c.
 */
#include <config.h>

#include <component/profiler.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "answer_fd.h"
#include "format.h"
#include "nearest.h"
#include "profiler.h"
#include "profile_request.h"

#define SECONDS_MAX 1e9 /* above it a number is no duration */
#define SIZE_LEAST  offsetof(struct component_profile_write_options, debug)

static int
options_take(const struct component_profile_write_options *from, struct component_profile_write_options *to)
{
	const struct component_profile_write_options usual = COMPONENT_PROFILE_WRITE_OPTIONS_INIT;

	*to = usual;
	if (!from)
		return 0;
	if (from->size < SIZE_LEAST || from->size > 16 * sizeof(*to))
		return -EINVAL; /* there is no telling where err would be */
	memcpy(to, from, from->size < sizeof(*to) ? from->size : sizeof(*to));
	return 0;
}

static int
refuse(const struct component_profile_write_options *o, int error, const char *why)
{
	component_error_set(o->err, "%s", why);
	return error;
}

/* Over HTTP that is ignored, as in Go. */
static int
refuse_view(const struct component_profile_write_options *o)
{
	char   why[PROFILE_REQUEST_WHY_BYTES] = "focus, ignore, sample_index, cum and rows need format; they are for ";
	size_t n = strlen(why);

	format_viewed(why + n, sizeof(why) - n);
	return refuse(o, -EINVAL, why);
}

/* As a query would ask for it. */
static void
asked_of(const struct component_profile_write_options *o, struct profile_request *ret)
{
	*ret = (struct profile_request){ .debug = o->debug, .gc = o->gc, .own = !o->without_own,
		.idle = !o->without_idle, .timed = o->seconds > 0,
		.seconds = o->seconds, .whole = (int64_t)o->seconds };
	ret->viewed = o->focus || o->ignore || o->sample_index || o->cum || o->rows;
	snprintf(ret->focus, sizeof(ret->focus), "%s", o->focus ? o->focus : "");
	snprintf(ret->ignore, sizeof(ret->ignore), "%s", o->ignore ? o->ignore : "");
	snprintf(ret->sample_index, sizeof(ret->sample_index), "%s", o->sample_index ? o->sample_index : "");
	ret->cum = o->cum;
	ret->rows = o->rows;
	snprintf(ret->format, sizeof(ret->format), "%s", o->format ? o->format : "");
}

/* Everything that can be told at once is told before a window of half a minute. */
static int
check(const char *name, int fd, const struct component_profile_write_options *o, const struct collector **ret)
{
	const struct collector *c = profile_request_collector(name);
	struct nearest          near;
	int                     mode = fcntl(fd, F_GETFL);

	if (!c) {
		nearest_begin(&near, name);
		profile_request_near(&near);
		if (*near.word)
			component_error_set(o->err, "'%.64s' is no profile of this process; did you mean '%s'?", name, near.word);
		else
			component_error_set(o->err, "'%.64s' is no profile of this process", name);
		return -ENOENT;
	}
	if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY)
		return refuse(o, -EBADF, "the descriptor is not open for writing");
	if (!(o->seconds >= 0 && o->seconds <= SECONDS_MAX))
		return refuse(o, -EINVAL, "seconds: not a duration");
	/* Over HTTP a window of 1.5 s is one of 30 s, as in Go. */
	if (o->seconds != (double)(int64_t)o->seconds && !c->fractions)
		return refuse(o, -EINVAL, "seconds: this profile takes whole ones");
	if (!o->format && (o->focus || o->ignore || o->sample_index || o->cum || o->rows))
		return refuse_view(o);
	if (c->missing && *c->missing())
		return refuse(o, -ENODATA, c->missing());
	*ret = c;
	return 0;
}

static int
profile_write(const char *name, int fd, const struct component_profile_write_options *o)
{
	const struct collector *c;
	struct answer_fd        to;
	struct profile_request  asked;
	struct job_spec         spec;
	uint64_t                symbol_memory;
	int64_t                 max_seconds;
	char                    why[PROFILE_REQUEST_WHY_BYTES] = "";
	int                     r = check(name, fd, o, &c);

	if (r)
		return r;
	asked_of(o, &asked);
	answer_fd_init(&to, fd);
	profiler_lend(&symbol_memory, &max_seconds);
	r = profile_request_job(c, c->name, &asked, max_seconds, &spec, why);
	if (!r)
		r = job_run_alone(&to.answer, &spec, symbol_memory, why, sizeof(why));
	profiler_lend_end();
	return r ? refuse(o, r, *why ? why : strerror(-r)) : 0;
}

int
component_profile_write(const char *name, int fd, const struct component_profile_write_options *options)
{
	struct component_profile_write_options o;
	int                                    cancel, saved = errno, r;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	r = options_take(options, &o);
	if (!r)
		r = profile_write(name, fd, &o);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	return r;
}
