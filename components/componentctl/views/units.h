/*
 * units.h - amounts and shares as go tool pprof writes them: "1.20s", "512.50kB", "12.34%".
 *
 * Unlike encode/lines.h, which has no more than nanoseconds and bytes and a unit for each number: here a column
 * has one unit, and foreign files have any.
 *
 *   threads  any
 *   source   components/componentctl/views/units.c
 */
#ifndef COMPONENTCTL_UNITS_H
#define COMPONENTCTL_UNITS_H

#include <stdint.h>

#define UNITS_MAX 400 /* bytes of a number and its unit, with NUL */

/* The unit in which a value of another is read best; "": it needs none.  The file's own word may be returned. */
const char *units_best(int64_t value, const char *unit);
/* to: a unit, or "auto" for the best. */
void units_format(char buf[UNITS_MAX], int64_t value, const char *unit, const char *to);
/* 0: it is no time. */
double units_nanoseconds(int64_t value, const char *unit);
/* In 5 columns and the sign. */
void units_percent(char buf[UNITS_MAX], int64_t value, int64_t total);

#endif
