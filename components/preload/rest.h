/*
 * rest.h - calls that go otherwise in a process of several threads: what the agent's core has for one_thread.c.
 *
 *     rests = component_profiler_rest(REST_CREDENTIALS);
 *     the real call
 *     if (rests)
 *             component_profiler_rest_end();
 *
 *   threads  any of the program's; errno is kept
 *   source   components/preload/rest.c
 */
#ifndef PRELOAD_REST_H
#define PRELOAD_REST_H

#include <stdbool.h>

#include <component/export.h>

enum rest_why {
	REST_CREDENTIALS, /* if the capabilities of a thread of ours are not the caller's */
	REST_ALONE        /* always */
};

/* In each process that is to have a server. */
COMPONENT_API void component_profiler_rest_prepare(void);
/* Ends our threads, if they are in the way; true: they are to be started again. */
COMPONENT_API bool component_profiler_rest(enum rest_why why);
COMPONENT_API void component_profiler_rest_end(void);

#endif
