/*
 * look.h - threads that have ended without coming by a hook.
 */
#ifndef COLLECT_TRACE_LOOK_H
#define COLLECT_TRACE_LOOK_H

#include <stdint.h>

typedef void trace_look_fn(void *arg, int32_t tid, int64_t now_ns);

/* Those that were there in the last look and are not now.  For component-trace alone. */
void trace_look(trace_look_fn *vanished, void *arg);
/* Forgets the last look. */
void trace_look_end(void);

#endif
