/*
 * checkpoints.h - the last whole profile or trace of an answer that has several, one behind the other.
 *
 * A server that is asked with checkpoint=N sends what there is so far while it measures, each time as a gzip member,
 * and the profile or trace itself as the last one.  An answer that was cut off ends with a part of one.
 *
 *   threads  any
 *   source   components/componentctl/files/checkpoints.c
 */
#ifndef COMPONENTCTL_CHECKPOINTS_H
#define COMPONENTCTL_CHECKPOINTS_H

#include <stddef.h>

/* Its first byte, and how many it has; 0 from data on where there is no whole one, and size where
 * there is no memory to look. */
size_t checkpoints_last(const unsigned char *data, size_t size, size_t *ret_size);

#endif
