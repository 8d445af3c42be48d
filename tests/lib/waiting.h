/*
 * waiting.h - clocks and waiting in C tests, beside those of clock.h.
 *
 * A test waits for a condition, never for time alone: WAIT_FOR() where the condition
 * certainly comes (make check's own patience ends the rest), WAIT_FOR_S() where it is to be
 * asserted behind it.  What rests, rests in full, whatever signals come.
 */
#ifndef TESTS_WAITING_H
#define TESTS_WAITING_H

#include "clock.h"

#define WAIT_STEP_NS INT64_C(1000000)

static inline int64_t
now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline void
rest_ns(int64_t ns)
{
	struct timespec left = clock_timespec(ns);

	while (nanosleep(&left, &left) < 0)
		;
}

#define WAIT_FOR(condition) do while (!(condition)) rest_ns(WAIT_STEP_NS); while (0)

#define WAIT_FOR_S(condition, seconds)                                                               \
	for (int64_t wait_end = now_ns() + (seconds) * CLOCK_NS_PER_S; !(condition) && now_ns() < wait_end;) \
		rest_ns(WAIT_STEP_NS)

#endif
