/*
 * threads.h - births, deaths, CPU samples and labels of threads, told to a trace by
 * those whom they befall.
 */
#ifndef COLLECT_TRACE_THREADS_H
#define COLLECT_TRACE_THREADS_H

#include <stdbool.h>

/* Whether samples and changes of labels are told. */
void trace_threads_watch(bool on);

#endif
