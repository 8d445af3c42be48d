/*
 * debug_pages.c - what the debug socket serves besides profiles.
 *
 *     GET /debug/options    every option, its value and where it came from
 *     PUT /debug/flags/v    the body is the verbosity from now on
 *
 * Options belong to the loop, so the loop is asked and given a second; one that hangs
 * is told, as with probes.  What is set holds until the next reload, which reads all
 * sources anew; the options show what the sources say, not what was set here.
 *
 * What a stranger would get wrong: a posted question cannot be taken back.  When the
 * second is over the asker leaves, and the loop finds nobody waiting; the next asker
 * waits for that to have happened, so that one question is under way at a time and
 * nothing piles up.
 *
 * Tests: tests/components/profiling.t.
 */
#include <config.h>

#include "debug_pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"

#define LOOP_ANSWER_S 1 /* as long as a probe waits */

static int
text(char **ret_text, int status, const char *words)
{
	*ret_text = strdup(words);
	return status;
}

void
debug_pages_init(struct debug_pages *p, struct component *c)
{
	pthread_condattr_t attr;

	p->c = c;
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->changed, &attr);
	pthread_condattr_destroy(&attr);
}

void
debug_pages_release(struct debug_pages *p)
{
	free(p->answer);
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
}

/* On the loop. */
static void
on_loop(struct component *c, void *arg)
{
	struct debug_pages *p = arg;

	pthread_mutex_lock(&p->lock);
	p->asked = false;
	if (p->waiting) {
		if (p->set_verbosity)
			p->answer = component_set_verbosity(c, p->verbosity) < 0 ? NULL :
				strdup("verbosity is set until the next reload\n");
		else
			p->answer = component_flags_dump(component_flags(c), false);
		p->answered = true;
	}
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

/* Waits under lock; false when the time is over. */
static bool
wait_until(struct debug_pages *p, const struct timespec *until)
{
	return pthread_cond_timedwait(&p->changed, &p->lock, until) != ETIMEDOUT;
}

/* NULL verbosity: the options.  Returns 200 or 503. */
static int
ask(struct debug_pages *p, const int64_t *verbosity, char **ret_text)
{
	struct timespec until = clock_timespec(clock_ns(CLOCK_MONOTONIC) + LOOP_ANSWER_S * CLOCK_NS_PER_S);
	int             status = 503;

	pthread_mutex_lock(&p->lock);
	while (p->asked || p->waiting)
		if (!wait_until(p, &until))
			goto out;
	if (component_post(p->c, on_loop, p) < 0)
		goto out;
	p->asked = p->waiting = true;
	p->answered = false;
	p->set_verbosity = verbosity != NULL;
	p->verbosity = verbosity ? *verbosity : 0;
	while (!p->answered)
		if (!wait_until(p, &until))
			break;
	if (p->answered) {
		status = 200;
		*ret_text = p->answer;
		p->answer = NULL;
	}
	p->waiting = false;
	pthread_cond_broadcast(&p->changed);
out:
	pthread_mutex_unlock(&p->lock);
	return status == 200 ? 200 : text(ret_text, 503, "the daemon's loop does not answer within 1s");
}

static int
answer_verbosity(struct debug_pages *p, const char *method, const char *body, char **ret_text)
{
	char   *end;
	int64_t value;

	if (strcmp(method, "PUT") != 0)
		return text(ret_text, 405, "method not allowed; PUT a number, as in curl -X PUT -d 1");
	errno = 0;
	value = strtoll(body, &end, 10);
	end += strspn(end, "\r\n");
	if (end == body || *end || errno || strspn(body, "-0123456789") == 0 || value < -2 || value > INT32_MAX)
		return text(ret_text, 400, "verbosity: write a number from -2 (errors alone) up, 0 is the usual one");
	return ask(p, &value, ret_text);
}

int
debug_pages_answer(void *arg, const char *method, const char *path, const char *body, char **ret_text)
{
	if (strcmp(path, "/debug/flags/v") == 0)
		return answer_verbosity(arg, method, body, ret_text);
	if (strcmp(path, "/debug/options") != 0)
		return text(ret_text, 404, "404 page not found; there are /debug/pprof/, /debug/options and /debug/flags/v");
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return text(ret_text, 405, "method not allowed; options are read with GET");
	return ask(arg, NULL, ret_text);
}
