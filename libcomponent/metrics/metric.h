/*
 * metric.h - the metrics of the process, for who writes them out.
 *
 * Both lists only grow, and are in the order of their names: they are read without a lock.
 *
 *   source   libcomponent/metrics/metric.c
 */
#ifndef METRICS_METRIC_H
#define METRICS_METRIC_H

#include <stdarg.h>
#include <stdbool.h>

#include <component/metrics.h>

#define METRIC_NAME_MAX 200 /* bytes of a metric's or label's name */
/* Of all labels of a series as they are shown, with NUL: a value may double by its escapes. */
#define METRIC_LABELS_BYTES (COMPONENT_METRIC_LABELS_MAX * (METRIC_NAME_MAX + 2 * COMPONENT_METRIC_VALUE_MAX + 4))

struct component_histogram {
	const struct component_metric *metric; /* has the bounds */
	uint64_t *counts; /* of each bucket by itself, +Inf the last */
	int64_t   sum;
};

struct metric_series {
	struct metric_series *_Atomic next;
	const char *labels; /* code="200",method="GET"; "" where there are none */
	void       *value;  /* a struct component_counter, _gauge or _histogram */
};

struct component_metric {
	struct component_metric *_Atomic next;
	struct component_metric_spec spec; /* its strings and bounds are the metric's own */
	unsigned  label_count;
	struct metric_series *_Atomic series;
	size_t    series_count;    /* under the lock */
	struct metric_series unseen; /* what is counted with where there is no series */
	struct component_counter dropped; /* how often that was given */
};

/* The first of all, or NULL. */
const struct component_metric *metric_first(void);
/* The values of a series as they are shown.  false: another number of them than the metric has labels. */
bool metric_labels(const struct component_metric *m, va_list values, char buf[METRIC_LABELS_BYTES]);

#endif
