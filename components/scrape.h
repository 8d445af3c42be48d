/*
 * scrape.h - metrics of what a component knows without being told.
 *
 * Each makes its metrics once a process; their values are read when somebody asks.
 */
#ifndef COMPONENTS_SCRAPE_H
#define COMPONENTS_SCRAPE_H

/* scrape_process.c: process_*, from /proc, under the names of Prometheus' own libraries. */
void scrape_process(void);
/* scrape_profiler.c: component_profiler_*, what looking costs. */
void scrape_profiler(void);

#endif
