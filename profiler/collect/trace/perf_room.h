/*
 * perf_room.h - what trace/perf.c asks before it opens anything.
 */
#ifndef COLLECT_TRACE_PERF_ROOM_H
#define COLLECT_TRACE_PERF_ROOM_H

#include <stdbool.h>

/* cpus: [TRACE_PERF_CPUS_MAX], all false; *ret_count: the highest number + 1.
 * 0 or a negative errno. */
int trace_perf_cpus_online(bool *cpus, unsigned *ret_count);
/* 0, or -EMFILE and a reason for people: threads times processors are too many. */
int trace_perf_room(const bool *cpus, unsigned cpu_count, char *why, unsigned size);

#endif
