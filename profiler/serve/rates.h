/*
 * rates.h - the sampling rates, one for each collector that has one.
 *
 *   threads  any; not from a signal handler
 *   source   profiler/serve/rates.c
 */
#ifndef SERVE_RATES_H
#define SERVE_RATES_H

#include <component/profiler.h>

#include "collector.h"

struct serve;
struct answer;

/* What options say of a rate, which must be whole. */
int64_t rates_of_options(const struct component_profiler_options *o, const struct collector_rate *rate);
/* Sets the rate of a collector that has one; 0 or a negative errno.  Noted in s, if not NULL, for a
 * restart after fork. */
int     rates_set(struct serve *s, const struct collector *c, int64_t rate);
/* Answers /debug/pprof/rates, GET and POST. */
void    rates_reply(struct serve *s, struct answer *a);

#endif
