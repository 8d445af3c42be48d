/*
 * under_valgrind.h - does valgrind run this process, and what to do there instead.
 *
 * Under it what the kernel says of a thread (/proc/self/task/TID/syscall) is said of valgrind's
 * own code; memcheck reports system calls that are meant to fail as the program's faults.
 *
 *   signals  safe
 *   source   profiler/model/under_valgrind.c
 */
#ifndef MODEL_UNDER_VALGRIND_H
#define MODEL_UNDER_VALGRIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern bool under_valgrind, under_memcheck; /* false before our constructors have run */

/* Copies memory that may not be there, in a way that memcheck does not mind.  Keeps errno. */
bool under_memcheck_copy(void *to, uintptr_t from, size_t size);

#endif
