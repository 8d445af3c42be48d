/*
 * trace.h - the program's own words in an execution trace: tasks, regions and logs.
 *
 *     uint64_t task = component_trace_task_begin("request", 0);
 *     component_trace_log(task, "path", "%s", path);
 *     component_trace_region_begin(task, "parse");
 *     ...
 *     component_trace_region_end(task, "parse");
 *     component_trace_task_end(task);
 *
 *     curl -o trace 'http://127.0.0.1:6060/debug/pprof/trace?seconds=5'
 *     go tool trace trace        its pages "User-defined tasks" and "regions"
 *
 * A task is a piece of work that may wander from thread to thread; a region is a part of
 * it on one thread; a log is a word at a moment.  While no trace is being taken each call
 * is a load and a branch, so they may stay in a program for good.
 *
 *   memory   nothing is allocated; texts are copied, and cut at the limits below
 *   threads  any, at any time
 *   signals  not from handlers
 *   fork     a child is in no trace
 *   errors   none: what finds no room is counted, and the trace says so
 *   source   profiler/collect/trace/annotations.c
 */
#ifndef COMPONENT_TRACE_H
#define COMPONENT_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include <component/export.h>

COMPONENT_BEGIN

#define COMPONENT_TRACE_NAME_MAX 127  /* bytes of a type or category */
#define COMPONENT_TRACE_TEXT_MAX 1023 /* bytes of a log's message */

/* component_trace_is_on - is a trace being taken?  To spare the work of what would only be logged. */
COMPONENT_API bool component_trace_is_on(void);

/*
 * component_trace_task_begin - a piece of work begins
 *
 *   type     what kind of work, "request"; tasks of one type are shown together
 *   parent   the task that it is part of, or 0
 *
 *   returns  its number, for the other calls; 0 while no trace is being taken, which
 *            they take for no task
 */
COMPONENT_API uint64_t component_trace_task_begin(const char *type, uint64_t parent);
/* Ends it, on any thread.  0 is ignored, so that a task which began before the trace is. */
COMPONENT_API void component_trace_task_end(uint64_t task);

/*
 * component_trace_region_begin, _end - what the calling thread does now
 *
 * Regions of a thread nest.  Both take the same words.  An end whose beginning was before
 * the trace is a region since the trace's start in go tool trace; format=perfetto leaves it
 * out.
 *
 *   task     whose part it is, or 0
 *   type     "parse"; regions of one type are shown together
 */
COMPONENT_API void component_trace_region_begin(uint64_t task, const char *type);
COMPONENT_API void component_trace_region_end(uint64_t task, const char *type);

/*
 * component_trace_log - a word at this moment
 *
 *   task      whose, or 0
 *   category  "path"; may be "" or NULL
 *   format    as for printf(3)
 */
COMPONENT_API void component_trace_log(uint64_t task, const char *category, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

COMPONENT_END

#endif
