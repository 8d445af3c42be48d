/*
 * metric.c - what it costs to count, beside a relaxed atomic add.
 *
 *     metric VARIANT THREADS    counter    component_counter_add(), all threads the same one
 *                               atomic     the add alone, likewise: the peer
 *                               histogram  component_histogram_observe()
 *
 * Prints add_ns: CPU time of all threads for one add.
 */
#include <stdlib.h>
#include <string.h>

#include <component/metrics.h>

#include "bench.h"

#define ADDS        20000000 /* of all threads together */
#define THREADS_MAX 64

static struct component_counter   *counter;
static struct component_histogram *histogram;
static struct {
	uint64_t value __attribute__((aligned(64)));
} plain;
static unsigned long each;
static char          variant;

static void *
count(void *arg)
{
	(void)arg;
	if (variant == 'c')
		for (unsigned long i = 0; i < each; i++)
			component_counter_add(counter, 1);
	else if (variant == 'a')
		for (unsigned long i = 0; i < each; i++)
			__atomic_fetch_add(&plain.value, 1, __ATOMIC_RELAXED);
	else
		for (unsigned long i = 0; i < each; i++)
			component_histogram_observe(histogram, (int64_t)(i * 7919 % 20000000000));
	return NULL;
}

static void
make(void)
{
	static const struct component_metric_spec counted = COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_COUNTER,
		.name = "bench_adds_total", .help = "Adds.", .labels = { "code" });
	static const struct component_metric_spec observed = COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_HISTOGRAM,
		.name = "bench_wait_seconds", .help = "Waits.", .per_unit = 1000000000);
	struct component_metric *m;

	component_metric_new(&counted, &m, NULL);
	counter = component_counter_of(m, "200", NULL);
	component_metric_new(&observed, &m, NULL);
	histogram = component_histogram_of(m, NULL);
}

int
main(int argc, char **argv)
{
	unsigned  threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	pthread_t made[THREADS_MAX];
	int64_t   begin;

	if (threads == 0 || threads > THREADS_MAX)
		return 2;
	variant = argv[1][0];
	each = ADDS / threads;
	make();
	begin = bench_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned i = 1; i < threads; i++)
		if (pthread_create(&made[i], NULL, count, NULL))
			bench_die("cannot start a thread");
	count(NULL);
	for (unsigned i = 1; i < threads; i++)
		pthread_join(made[i], NULL);
	bench_print("add_ns", (double)(bench_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) / ((double)each * threads), "ns");
	return 0;
}
