/*
 * options.h - a deep copy of what component_profiler_start_options() is given.
 *
 *   source   profiler/serve/options.c
 */
#ifndef SERVE_OPTIONS_H
#define SERVE_OPTIONS_H

#include <component/profiler.h>

int  options_copy(struct component_profiler_options *to, const struct component_profiler_options *from,
	 struct component_error *err);
void options_release(struct component_profiler_options *o);

#endif
