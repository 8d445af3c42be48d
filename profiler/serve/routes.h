/*
 * routes.h - from what is asked to whoever answers, by the paths of Go's net/http/pprof.
 *
 *   threads  the server's
 *   source   profiler/serve/routes.c
 */
#ifndef SERVE_ROUTES_H
#define SERVE_ROUTES_H

#include <stdbool.h>

#include "answer.h"

/* For struct httpd_options, and for other doors; serve is a struct serve. */
void   routes_on_request(struct answer *a, void *serve);
/* Is it a path of ours, on whatever server?  Any thread. */
bool   routes_has(const char *path);
size_t routes_body_max(const struct ask *ask, void *serve);

#endif
