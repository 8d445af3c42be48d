/*
 * plain_mutex.h - the hooks lock plain mutexes themselves, if they may (struct hooks_plain_mutex).
 *
 *   threads  any: two at once find the same
 *   fork     plain_mutex_forked() in a child, where the thread that there is has another id
 *   source   profiler/collect/waits/plain_mutex.c
 */
#ifndef WAITS_PLAIN_MUTEX_H
#define WAITS_PLAIN_MUTEX_H

/* Looks once; before waits are switched on, the hooks being claimed and resolved. */
void plain_mutex_begin(void);
void plain_mutex_forked(void);

#endif
