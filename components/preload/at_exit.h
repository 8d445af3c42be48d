/*
 * at_exit.h - a program that ends by exit(3) within a window leaves what was measured.
 *
 *     exit() ──▶ component_profiler_at_exit() ──▶ windows end now ──▶ their answers are sent ──▶ the process ends
 *
 * Nobody waits where no request is being worked on, and nobody waits for more than two seconds in exit().
 *
 *   threads  the one that ends the program
 *   fork     in a child nothing happens, unless it has a server of its own (follow_forks.h)
 *   source   components/preload/at_exit.c
 */
#ifndef PRELOAD_AT_EXIT_H
#define PRELOAD_AT_EXIT_H

#include <component/export.h>

COMPONENT_API void component_profiler_at_exit(void);

/* The calling thread is the first of its process.  It may end before others, by pthread_exit(3) or by being cancelled; in a child
 * that another thread forked also by returning.  When no other thread of the program is left ours end, and the process then ends as
 * it would without them.  Once, before there is a server. */
COMPONENT_API void component_profiler_first(void);
/* The same of a child, in which a server may be started.  Signal-safe; a system call. */
void at_exit_forked(void);

/* This process is to have a server, and has been started one, or it failed.  By any thread. */
void at_exit_begin(void);
void at_exit_began(void);

#endif
