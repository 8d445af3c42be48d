/*
 * legacy_map.h - the mappings of a profile that has no names, and names for its addresses.
 *
 *   threads  one at a time for one struct pprof
 *   source   components/componentctl/files/legacy/legacy_map.c
 */
#ifndef COMPONENTCTL_LEGACY_MAP_H
#define COMPONENTCTL_LEGACY_MAP_H

#include "read.h"

#define LEGACY_MAP_MAX ((size_t)1 << 16) /* mappings of code; Linux allows a process 65530 of all kinds */

/* Sets p's mappings by text, lines as of /proc/PID/maps or "from-to: path"; others are passed over. */
int legacy_map_read(const char *text, size_t size, struct pprof *p, struct component_error *err);
/* Sets mapping, functions and lines of p's locations, which have addresses and nothing else. */
int legacy_map_name(struct pprof *p, struct component_error *err);

#endif
