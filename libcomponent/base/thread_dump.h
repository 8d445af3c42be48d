/*
 * thread_dump.h - who prints all threads' stacks when a signal asks for it.
 *
 * The signals are libcomponent's, the stacks are the profiler's, and neither knows the
 * other: component_main() brings them together here.
 */
#ifndef BASE_THREAD_DUMP_H
#define BASE_THREAD_DUMP_H

/* Writes to fd; works while all else is stuck.  0 or a negative errno. */
typedef int thread_dump_fn(int fd);

/* Before signals are installed. */
void            thread_dump_set(thread_dump_fn *fn);
thread_dump_fn *thread_dump_get(void); /* NULL: nobody */

#endif
