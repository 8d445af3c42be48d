/*
 * tracer.h - execution traces: any number of windows on the same sources.
 *
 * While no window is open no descriptor, thread, ring or timer is there, and no hook does
 * more than its one branch.
 */
#ifndef COLLECT_TRACE_TRACER_H
#define COLLECT_TRACE_TRACER_H

#include <stddef.h>
#include <stdint.h>

#include "trace.h"

/* Records of all open windows together, 56 bytes each; beyond they are counted as lost. */
#define TRACER_RECORDS_MAX (2u << 20)
/* Bytes of names and messages of one window; what has a text is lost beyond. */
#define TRACER_TEXTS_MAX ((size_t)32 << 20)

struct tracer_window;

/*
 * tracer_open - begin to look
 *
 *   returns  0; -ENOMEM; -EAGAIN: no thread can be started; or why no source is there
 *   threads  any; not from signal handlers
 */
int  tracer_open(struct tracer_window **ret);
/* What tracer_close() would return now; the window stays open.  0; -ENOMEM, also where its records and a copy of them are
 * more than TRACER_RECORDS_MAX.  Not beside tracer_close() of the same window. */
int  tracer_so_far(const struct tracer_window *w, struct trace *ret);
/* Ends the window and makes its trace, sorted; frees the window.  0 or -ENOMEM. */
int  tracer_close(struct tracer_window *w, struct trace *ret);
void tracer_cancel(struct tracer_window *w);

#endif
