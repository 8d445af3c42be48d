/*
 * duration.h - lengths of time: int64_t, in nanoseconds, wherever the library takes or gives one.
 *
 *     static int64_t every = COMPONENT_SECONDS(1);
 *     component_timer_add(c, 0, COMPONENT_MILLISECONDS(250), tick, NULL, NULL);
 *
 * They are integer constants when their arguments are, so they may stand in initialisers of static
 * variables, in rows of options and in case labels.
 *
 * What a stranger would get wrong: a fraction is no argument, and does not compile, for it would be
 * cut or rounded on the way.  Half a second is COMPONENT_MILLISECONDS(500).
 *
 * Tests: tests/flags/row_types.t.
 */
#ifndef COMPONENT_DURATION_H
#define COMPONENT_DURATION_H

#include <stdint.h>

#define COMPONENT_MICROSECONDS(n) COMPONENT_DURATION_(n, 1000)
#define COMPONENT_MILLISECONDS(n) COMPONENT_DURATION_(n, 1000000)
#define COMPONENT_SECONDS(n)      COMPONENT_DURATION_(n, 1000000000)
#define COMPONENT_MINUTES(n)      COMPONENT_DURATION_(n, 60000000000)
#define COMPONENT_HOURS(n)        COMPONENT_DURATION_(n, 3600000000000)

/* Of any integer type and sign, at most 292 years; | takes no fraction. */
#define COMPONENT_DURATION_(n, ns) ((int64_t)((n) | 0) * INT64_C(ns))

#endif
