/*
 * collect.h - a profile as a job: of now, of a time, or what a time has added.
 *
 *   threads  a job's
 *   source   profiler/serve/collect.c
 */
#ifndef SERVE_COLLECT_H
#define SERVE_COLLECT_H

#include "job.h"

int collect_run(struct job *j);

#endif
