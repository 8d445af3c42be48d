/*
 * rest.h - calls that go otherwise in a process of several threads: what the agent's core has for one_thread.c.
 *
 *     rests = component_profiler_rest(REST_UNLIKE);
 *     the real call
 *     if (rests)
 *             component_profiler_rest_end();
 *
 *   threads  any of the program's; a second one waits until the first has ended its rest.  errno is kept.
 *            From one call to the other the thread is not cancelled.
 *   fork     a child, however it was made, has no thread of ours, and nothing rests
 *   source   components/preload/rest.c
 */
#ifndef PRELOAD_REST_H
#define PRELOAD_REST_H

#include <stdbool.h>

#include <component/export.h>

enum rest_why {
	REST_UNLIKE, /* if a thread of ours has other capabilities than the caller */
	REST_MORE,   /* if one may have some that the caller gave up */
	REST_ALONE   /* always, until the kernel has forgotten them */
};

/* Ends our threads, if they are in the way; true: they are to be started again. */
COMPONENT_API bool component_profiler_rest(enum rest_why why);
COMPONENT_API void component_profiler_rest_end(void);

#endif
