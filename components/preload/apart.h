/*
 * apart.h - the agent's server, with its descriptors in a table of its own where that can be had.
 *
 * component_profiler_start_apart() is component_profiler_start_options() for a program that knows nothing of us: no
 * callback of the options uses a descriptor of the program's.  An address that is an inherited socket (fd:NAME) is
 * served from the program's table, as everything is on kernels before 5.9, under a seccomp filter and under valgrind.
 *
 *   threads  any of the program's
 *   source   components/preload/apart.c
 */
#ifndef PRELOAD_APART_H
#define PRELOAD_APART_H

#include <component/profiler.h>

COMPONENT_API int component_profiler_start_apart(const struct component_profiler_options *options, struct component_error *err);

#endif
