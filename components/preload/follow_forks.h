/*
 * follow_forks.h - a server in each child of the program that lives.
 *
 *     component_profiler_follow_forks("nginx", 0, 4711, false, "-01");   in the program's first process
 *     component_profiler_follow_forks("nginx", 0, 4711, true, "000");    in one that it forked, after an exec
 *
 * The child's server listens on a unix socket beside its record, and the record names the first process as
 * its parent.
 *
 *   id, app_port, parent   for records; id is copied
 *   is_child               of this process, too: it begins as a child that was just forked
 *   filters                in the environment (under_run.h), which the first process writes and the others read; "": nowhere
 *   threads                before the program has any
 *   fork                   this is what it is about
 *   source                 components/preload/follow_forks.c
 */
#ifndef PRELOAD_FOLLOW_FORKS_H
#define PRELOAD_FOLLOW_FORKS_H

#include <stdbool.h>
#include <stdint.h>

#include <component/export.h>

COMPONENT_API void component_profiler_follow_forks(const char *id, int64_t app_port, long parent, bool is_child, char *filters);

/* The program is about to call prctl() for a seccomp filter, or for what comes before one.  Signal-safe, no system call. */
COMPONENT_API void component_profiler_confined(void);

/* While this process' server is being started, by a thread of ours: waits until it is there or there is none, for so long.
 * False: this is no child that is followed. */
bool follow_forks_settle(int64_t wait_ns);

#endif
