/*
 * retry_delay.h - how long the retry of a key waits.  No locks: its owner has one.
 */
#ifndef CONTROLLERS_RETRY_DELAY_H
#define CONTROLLERS_RETRY_DELAY_H

#include <component/controller.h>

#include "clock.h"

/* 100 years in ns: what is later is not told apart, and sums do not overflow. */
#define RETRY_DELAY_MAX_NS (CLOCK_NS_PER_S * 3600 * 24 * 365 * 100)

struct retry_delay {
	struct component_queue_options options;
	double  tokens;    /* below 0: debt */
	int64_t tokens_ns; /* when they were counted */
};

bool    retry_delay_is_valid(const struct component_queue_options *options);
void    retry_delay_init(struct retry_delay *p, const struct component_queue_options *options, int64_t now_ns);
void    retry_delay_set(struct retry_delay *p, const struct component_queue_options *options);
/* The wait of a key that has failed so often before; takes so many tokens, 1 or, of one that has its own, 0. */
int64_t retry_delay_ns(struct retry_delay *p, unsigned failures, int64_t now_ns, unsigned tokens);

#endif
