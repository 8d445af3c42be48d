/*
 * perf.h - context switches, births, deaths and names of threads, from the kernel.
 *
 * Calls are for the tracer, under its lock but for trace_perf_open() and trace_perf_close(), which take long: a thread may fork
 * meanwhile.
 */
#ifndef COLLECT_TRACE_PERF_H
#define COLLECT_TRACE_PERF_H

#include <stdbool.h>
#include <stdint.h>

#include "trace.h"

#define TRACE_PERF_EVENTS_MAX 4096 /* descriptors: threads times processors; above, hooks are the source */
#define TRACE_PERF_RING_BYTES (512 << 10) /* of each processor: 16384 switches until it is read */
#define TRACE_PERF_CPUS_MAX   512

/* As the kernel tells it: of records there are IN, OUT, CREATE and EXIT. */
typedef void trace_perf_fn(void *arg, const struct trace_record *r);
/* The thread is called so from then on. */
typedef void trace_perf_name_fn(void *arg, int32_t tid, uint64_t time_ns, const char *name);

/* 0; or a negative errno and a reason for people in why. */
int      trace_perf_open(char *why, unsigned size);
void     trace_perf_close(void);
/* In a child, where its memory is not mapped; of a parent that has none open, too. */
void     trace_perf_forked(void);
void     trace_perf_drain(trace_perf_fn *fn, trace_perf_name_fn *name, void *arg);
/* Records that found no room since it was opened. */
uint64_t trace_perf_lost(void);
/* Highest number of a processor + 1. */
unsigned trace_perf_cpus(void);
/* Descriptors that are open. */
unsigned trace_perf_events(void);

#endif
