/*
 * retry_delay.c - how long the retry of a key waits.
 *
 * A key's own delay doubles with each failure, from the base to the cap.  A bucket
 * of tokens, filled qps times a second up to burst, is shared by all keys and may go
 * into debt; the debt divided by the rate is the wait.  The larger of both counts,
 * as in Go's client libraries.
 *
 * Tests: tests/controllers/test_queue.c.
 */
#include <config.h>

#include "clock.h"
#include "retry_delay.h"

/* Above any sensible rate; keeps products finite. */
#define QPS_MAX 1e9

bool
retry_delay_is_valid(const struct component_queue_options *o)
{
	return o->size >= sizeof *o && o->base_delay_ns >= 0 && o->base_delay_ns <= o->max_delay_ns &&
	       o->qps > 0 && o->qps <= QPS_MAX && o->burst > 0;
}

void
retry_delay_init(struct retry_delay *p, const struct component_queue_options *options, int64_t now_ns)
{
	p->options = *options;
	p->tokens = (double)options->burst;
	p->tokens_ns = now_ns;
}

void
retry_delay_set(struct retry_delay *p, const struct component_queue_options *options)
{
	p->options = *options;
	if (p->tokens > (double)options->burst)
		p->tokens = (double)options->burst;
}

/* base * 2^failures without overflow, at most max. */
static int64_t
backoff_ns(const struct component_queue_options *o, unsigned failures)
{
	if (failures >= 62 || o->base_delay_ns > o->max_delay_ns >> failures)
		return o->base_delay_ns == 0 ? 0 : o->max_delay_ns;
	return o->base_delay_ns << failures;
}

/* Takes so many tokens, from the future if there are none; returns how far away they are. */
static int64_t
token_wait_ns(struct retry_delay *p, int64_t now_ns, unsigned tokens)
{
	double wait;

	p->tokens += (double)(now_ns - p->tokens_ns) / (double)CLOCK_NS_PER_S * p->options.qps;
	p->tokens_ns = now_ns;
	if (p->tokens > (double)p->options.burst)
		p->tokens = (double)p->options.burst;
	p->tokens -= tokens;
	if (p->tokens >= 0)
		return 0;
	wait = -p->tokens / p->options.qps * (double)CLOCK_NS_PER_S;
	return wait < (double)RETRY_DELAY_MAX_NS ? (int64_t)wait : RETRY_DELAY_MAX_NS;
}

int64_t
retry_delay_ns(struct retry_delay *p, unsigned failures, int64_t now_ns, unsigned tokens)
{
	int64_t own = backoff_ns(&p->options, failures), shared = token_wait_ns(p, now_ns, tokens);

	return own > shared ? own : shared;
}
