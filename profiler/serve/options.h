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
/* Takes from fresh what may change, for threads that read numbers meanwhile; what pointers were is in
 * fresh then, to be released. */
void options_change(struct component_profiler_options *now, struct component_profiler_options *fresh);
void options_release(struct component_profiler_options *o);

#endif
