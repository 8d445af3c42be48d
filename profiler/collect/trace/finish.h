/*
 * finish.h - what was seen becomes a trace from its start to its end.
 */
#ifndef COLLECT_TRACE_FINISH_H
#define COLLECT_TRACE_FINISH_H

#include "trace.h"

/* Beside enum trace_type, until trace_finish(): text is the thread's name from then on. */
#define TRACE_RECORD_NAME 128

/*
 * trace_finish - sorts, and takes out what is no record of the window
 *
 * t->threads are those that a dump has seen, which was done at settled_ns.  Afterwards
 * they are as they stood at start_ns, threads that came are in t->threads as well, names
 * are the last that were known, and nothing is told twice.
 *
 *   returns  0 or -ENOMEM, and then t is still to be released
 */
int trace_finish(struct trace *t, uint64_t settled_ns);

#endif
