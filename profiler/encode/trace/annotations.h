/*
 * annotations.h - what threads say of themselves: tasks, regions, logs, labels, samples.
 * One function for each type of record.
 */
#ifndef ENCODE_TRACE_ANNOTATIONS_H
#define ENCODE_TRACE_ANNOTATIONS_H

#include "story.h"

/* With nothing known of the stack where it ends: 0. */
void story_region_end(struct story *s, struct story_thread *t, uint32_t stack);
void story_on_sample(struct story *s, const struct trace_record *r);
void story_on_labels(struct story *s, const struct trace_record *r);
void story_on_heap(struct story *s, const struct trace_record *r);
void story_on_task(struct story *s, const struct trace_record *r);
void story_on_region_begin(struct story *s, const struct trace_record *r);
void story_on_region_end(struct story *s, const struct trace_record *r);
void story_on_log(struct story *s, const struct trace_record *r);

#endif
