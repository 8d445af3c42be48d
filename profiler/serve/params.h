/*
 * params.h - a query as Go's Request.FormValue reads it.
 *
 *   threads  any
 *   source   profiler/serve/params.c
 */
#ifndef SERVE_PARAMS_H
#define SERVE_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool param_get(const char *query, const char *name, char *buf, size_t size); /* the first that can be read */
int  param_int(const char *text, int64_t *ret); /* -EINVAL: 0; -ERANGE: the nearest there is */

/* As Go's ParseFloat, in every locale; -EINVAL: no number, or one that is not finite. */
int  param_float(const char *text, double *ret);

#endif
