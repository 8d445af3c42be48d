/*
 * initial_threads.h - who is there when a trace begins, and what they do.
 */
#ifndef ENCODE_TRACE_INITIAL_THREADS_H
#define ENCODE_TRACE_INITIAL_THREADS_H

#include "story.h"

/* Tells of them as they are at the trace's start.  0, or a negative errno which ends the story. */
int story_begin(struct story *s);

#endif
