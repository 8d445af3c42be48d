/*
 * bench.h - what the measuring programs share: clocks, medians, and their manners
 * (one round a run, lines "NAME VALUE UNIT", status 77 with a reason to be skipped).
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BENCH_SKIPPED 77

static inline int64_t
bench_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static inline int
bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts them. */
static inline double
bench_median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), bench_compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static inline void
bench_print(const char *name, double value, const char *unit)
{
	printf("%s %.9g %s\n", name, value, unit);
}

__attribute__((noreturn)) static inline void
bench_die(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

__attribute__((noreturn)) static inline void
bench_skip(const char *why)
{
	fprintf(stderr, "%s\n", why);
	exit(BENCH_SKIPPED);
}

static inline void *
bench_sleep_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* After it libc knows that the process has more than one thread. */
static inline void
bench_second_thread(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, bench_sleep_for_ever, NULL))
		bench_die("no second thread");
}

#endif
