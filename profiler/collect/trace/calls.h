/*
 * calls.h - system calls that threads wait in, timed while a trace is open.
 */
#ifndef COLLECT_TRACE_CALLS_H
#define COLLECT_TRACE_CALLS_H

#include <stdbool.h>

/* What takes less did not wait: a switch to another thread and back takes longer. */
#define TRACE_CALL_LEAST_NS 5000

/* Without hooks in the process nothing happens.  Any thread, also in fork handlers. */
void trace_calls_watch(bool on);

#endif
