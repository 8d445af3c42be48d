/*
 * exposition.h - all metrics of the process as text that Prometheus reads.
 *
 *   threads  any, several at once; calls the collect() of metrics that have one
 *   memory   malloc'd, as text.h says: ask out->failed
 *   source   libcomponent/metrics/exposition.c
 */
#ifndef METRICS_EXPOSITION_H
#define METRICS_EXPOSITION_H

#include "text.h"

enum exposition_format {
	EXPOSITION_TEXT,        /* Prometheus' own, version 0.0.4 */
	EXPOSITION_OPENMETRICS, /* version 1.0.0 */
};

#define EXPOSITION_TEXT_TYPE        "text/plain; version=0.0.4; charset=utf-8"
#define EXPOSITION_OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

void exposition_write(struct text *out, enum exposition_format format);

#endif
