/*
 * pace.h - how long the retry of a key waits.  No locks: its owner has one.
 */
#ifndef LIFE_PACE_H
#define LIFE_PACE_H

#include <component/controller.h>

#include "clock.h"

/* 100 years in ns: what is later is not told apart, and sums do not overflow. */
#define PACE_DELAY_MAX_NS (CLOCK_NS_PER_S * 3600 * 24 * 365 * 100)

struct pace {
	struct component_queue_options options;
	double  tokens;    /* below 0: debt */
	int64_t tokens_ns; /* when they were counted */
};

bool    pace_is_valid(const struct component_queue_options *options);
void    pace_init(struct pace *p, const struct component_queue_options *options, int64_t now_ns);
void    pace_set(struct pace *p, const struct component_queue_options *options);
/* The wait of a key that has failed so often before; takes a token. */
int64_t pace_delay_ns(struct pace *p, unsigned failures, int64_t now_ns);

#endif
