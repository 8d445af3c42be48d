/*
 * profiling.h - what the other ready-made parts ask the profiling part.
 */
#ifndef COMPONENTS_PROFILING_H
#define COMPONENTS_PROFILING_H

#include <stdbool.h>
#include <stddef.h>

#include <component/component.h>

/* The address profiles are or would be served on, and whether a person wants
 * them there; false when the component does not use the part. */
bool profiling_address(const struct component *c, char *buf, size_t size);

#endif
