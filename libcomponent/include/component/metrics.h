/*
 * metrics.h - numbers for Prometheus: counters, gauges, histograms.
 *
 *     static const struct component_metric_spec requests = COMPONENT_METRIC_SPEC(
 *             .type = COMPONENT_METRIC_COUNTER, .name = "shop_requests_total",
 *             .help = "Requests answered, by status.", .labels = { "code" });
 *
 *     component_metric_new(&requests, &m, NULL);
 *     answered = component_counter_of(m, "200", NULL);     once: it is a handle
 *     component_counter_add(answered, 1);                  wherever one is answered
 *
 * In C++ an array cannot be assigned: leave out .labels and the const, and before the spec is used
 *
 *     requests.labels[0] = "code";
 *
 * All metrics are the process's.  They may be made and counted at any time, before main()'s
 * component starts too, whether anybody asks for them or not.  component_main() serves
 * them where --metrics-bind-address says; without it there is no server.
 *
 * Every value is a whole number of the smallest unit that matters, nanoseconds for a time:
 * adding is exact then, and one instruction.  per_unit says how many of them are one of the
 * unit that is shown, which for Prometheus is a base unit: seconds, bytes.
 *
 *   source   libcomponent/metrics/metric.c, libcomponent/metrics/exposition.c
 */
#ifndef COMPONENT_METRICS_H
#define COMPONENT_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include <component/each.h>
#include <component/error.h>
#include <component/export.h>

COMPONENT_BEGIN

#define COMPONENT_METRICS_MAX        1000 /* metrics of a process */
#define COMPONENT_METRIC_LABELS_MAX  8    /* labels of a metric */
#define COMPONENT_METRIC_BUCKETS_MAX 64   /* buckets of a histogram, the last one, +Inf, not counted */
#define COMPONENT_METRIC_SERIES      1000 /* series of a metric, if its spec does not say otherwise */
#define COMPONENT_METRIC_VALUE_MAX   256  /* bytes of a label's value; the rest is cut off */

enum component_metric_type {
	COMPONENT_METRIC_COUNTER,   /* only grows; its name ends in _total */
	COMPONENT_METRIC_GAUGE,     /* goes up and down */
	COMPONENT_METRIC_HISTOGRAM, /* observations, counted by size */
};

struct component_metric;
struct component_metric_samples;

/* What is counted with.  Each has a cache line of its own, so that threads that count
 * different things do not meet. */
struct component_counter {
	uint64_t value;
};
struct component_gauge {
	int64_t value;
};
struct component_histogram;

/* For values that are found out when somebody asks, not before: calls component_metric_sample() for
 * each series, or sets handles that it has.  On the server's thread; must not block, nor make metrics. */
typedef void component_metric_collect_fn(struct component_metric_samples *to, void *arg);

/*
 * struct component_metric_spec - what a metric is
 *
 * Write it with COMPONENT_METRIC_SPEC.  All of it is copied.
 */
struct component_metric_spec {
	size_t                     size; /* the macro's */
	enum component_metric_type type;
	const char                *name; /* [a-zA-Z_][a-zA-Z0-9_]*: "shop_wait_seconds" */
	const char                *help; /* one sentence */
	const char                *labels[COMPONENT_METRIC_LABELS_MAX]; /* their names; the first NULL ends them;
	                                                                 * in C++ to be set afterwards */
	int64_t                    per_unit; /* 1, 10, 100 ... 1000000000: nanoseconds shown as seconds; 0: 1 */
	const int64_t             *buckets; /* upper bounds, growing, in what is observed; NULL: 5 ms to 10 s, if
	                                     * per_unit is 1000000000, and a fault if not */
	size_t                     bucket_count;
	size_t                     series_max; /* 0: COMPONENT_METRIC_SERIES */
	component_metric_collect_fn *collect; /* of a counter or gauge: who knows the values; or NULL */
	void                      *arg;
};

#define COMPONENT_METRIC_SPEC(...) COMPONENT_SIZED_(component_metric_spec, __VA_ARGS__)

/*
 * component_metric_new - make a metric, or get the one that is there
 *
 *   returns  0; or, with nothing changed, *ret NULL and a sentence in err (nullable),
 *              -EINVAL  a name, label, bucket or unit that cannot be
 *              -EEXIST  there is one of that name that is something else
 *              -ENOSPC  there are COMPONENT_METRICS_MAX
 *              -ENOMEM
 *            Asked for again with the same spec it is the same metric.
 *   owns     *ret is the library's, until the process ends
 *   threads  any
 *   signals  not from a handler
 *   fork     a child has all metrics with their values
 *   source   libcomponent/metrics/metric.c
 */
COMPONENT_API int component_metric_new(const struct component_metric_spec *spec, struct component_metric **ret,
	struct component_error *err);

/*
 * component_counter_of   - the handle of a series of a counter
 * component_gauge_of     - the same of a gauge
 * component_histogram_of - the same of a histogram
 *
 * The label's values follow, one for each label of the spec, then NULL.  Ask once and keep
 * the handle: this takes a lock and searches.  The series is shown from now on, with 0.
 *
 *   m        NULL, as after a failure, is fine: what is counted then nobody sees
 *   returns  never NULL.  Where the series cannot be had (no memory, a metric of another
 *            type, another number of values, more series than series_max) it is one that
 *            is counted with as any other and never shown, and
 *            component_metrics_dropped_series_total says so
 *   owns     the library, until the process ends
 *   threads  any
 *   signals  not from a handler
 *   fork     valid in a child
 *   source   libcomponent/metrics/metric.c
 */
COMPONENT_API struct component_counter *component_counter_of(struct component_metric *m, ...) __attribute__((sentinel));
COMPONENT_API struct component_gauge *component_gauge_of(struct component_metric *m, ...) __attribute__((sentinel));
COMPONENT_API struct component_histogram *component_histogram_of(struct component_metric *m, ...)
	__attribute__((sentinel));

/*
 * component_counter_add - it has grown by n
 * component_gauge_set   - it is n now
 * component_gauge_add   - it is n more, or less if n is negative
 *
 *   units    of the spec's per_unit
 *   threads  any; one atomic instruction, which orders nothing else
 *   signals  may be called from a handler
 *   fork     a child counts for itself
 */
static inline void
component_counter_add(struct component_counter *c, uint64_t n)
{
	__atomic_fetch_add(&c->value, n, __ATOMIC_RELAXED);
}

static inline void
component_gauge_set(struct component_gauge *g, int64_t n)
{
	__atomic_store_n(&g->value, n, __ATOMIC_RELAXED);
}

static inline void
component_gauge_add(struct component_gauge *g, int64_t n)
{
	__atomic_fetch_add(&g->value, n, __ATOMIC_RELAXED);
}

/*
 * component_histogram_observe - n was seen once
 *
 * Two atomic adds and a search among the bounds.  Somebody who asks meanwhile may see the
 * observation in its bucket and not yet in the sum.  The rest as component_counter_add().
 *
 *   source   libcomponent/metrics/metric.c
 */
COMPONENT_API void component_histogram_observe(struct component_histogram *h, int64_t n);

/*
 * component_metric_sample - one series, from a component_metric_collect_fn
 *
 * The label's values follow, as in component_counter_of(), then NULL.  The same values twice
 * would be a fault that Prometheus refuses: that is the caller's to avoid.
 *
 *   value    in what per_unit counts
 *   threads  that of the call of collect()
 *   source   libcomponent/metrics/exposition.c
 */
COMPONENT_API void component_metric_sample(struct component_metric_samples *to, int64_t value, ...)
	__attribute__((sentinel));

COMPONENT_END

#endif
