/*
 * perf_read.h - a ring of the kernel's records, read empty.
 */
#ifndef COLLECT_TRACE_PERF_READ_H
#define COLLECT_TRACE_PERF_READ_H

#include <stddef.h>
#include <stdint.h>

#include "perf.h"

struct trace_perf_sink {
	trace_perf_fn      *fn;
	trace_perf_name_fn *name;
	void               *arg;
	int32_t             pid;  /* whose records are told */
	uint64_t            lost; /* records the kernel had no room for; added to */
};

/* mapped: the page of the head, and behind it so many bytes of ring. */
void trace_perf_read(void *mapped, size_t ring_bytes, struct trace_perf_sink *to);

#endif
